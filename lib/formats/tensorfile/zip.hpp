// SPDX-License-Identifier: Apache-2.0
// Zip archives as torch.save makes them: entries stored, not compressed, their data aligned to 64 bytes.
// Zip64 where a size or offset needs it. Format: PKWARE's APPNOTE.TXT.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "tensorfile/storage.hpp"

namespace zs::tensorfile {

class ZipWriter {
 public:
  /// The archive begins after `begin` bytes of `output`, whose owner commits it; `place` leads in messages. Sizes and
  /// offsets from `large` on are written as zip64; only tests need another value than the format's.
  ZipWriter(Output& output, std::uint64_t begin, std::string place, std::uint64_t large = 0xFFFFFFFF);

  void add(const std::string& name, const Storage& data);
  /// Writes the directory. Gives the bytes of the archive. REQUIRES: called once, last.
  std::uint64_t finish();

 private:
  struct Entry {
    std::string name;
    std::uint64_t size = 0, header = 0;  // header: offset of the local header
    std::uint32_t crc = 0;
  };
  Output& output_;
  std::uint64_t begin_;
  std::string place_;
  std::uint64_t large_;
  std::uint64_t at_ = 0;  // in the archive
  std::vector<Entry> entries_;
  void write(std::string_view bytes);
};

class ZipReader {
 public:
  /// Reads the directory and checks every entry's place and header. Throws Error, with the path, where the file is
  /// no zip archive, cut short, damaged, or holds two entries of one name.
  explicit ZipReader(std::shared_ptr<const Mapping> file);
  /// The same of an archive that is a part of the file: `bytes` are the mapping's.
  ZipReader(std::shared_ptr<const Mapping> file, std::string_view bytes);

  /// The names of all entries, sorted.
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return entries_.contains(name); }
  /// The bytes of an entry, not yet read: Storage::verify() compares the checksum.
  /// Throws Error where there is no such entry or it is compressed.
  StoragePtr open(const std::string& name) const;

 private:
  struct Entry {
    std::uint64_t begin = 0, size = 0;
    std::uint32_t crc = 0;
    bool stored = false;
  };
  std::shared_ptr<const Mapping> file_;
  std::string_view all_;
  std::map<std::string, Entry> entries_;
};

}  // namespace zs::tensorfile
