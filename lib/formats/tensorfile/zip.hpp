// SPDX-License-Identifier: Apache-2.0
// Zip archives in the form of torch.save: entries stored uncompressed, their data aligned to 64 bytes, Zip64 if a size
// or offset needs it. Format: PKWARE's APPNOTE.TXT.
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
  /// Writes the archive at offset `begin` of `output`, which the caller commits; messages begin with `place`. Sizes and
  /// offsets from `large` on are written as zip64; only tests set it.
  ZipWriter(Output& output, std::uint64_t begin, std::string place, std::uint64_t large = 0xFFFFFFFF);

  void add(const std::string& name, const Storage& data);
  /// Writes the directory. Returns the size of the archive in bytes. REQUIRES: called once, last.
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
  std::uint64_t at_ = 0;  // offset in the archive
  std::vector<Entry> entries_;
  std::string record_of(const Entry& entry) const;
  void write(std::string_view bytes);
};

class ZipReader {
 public:
  /// Reads the directory and checks the place and header of each entry. Throws Error, with the path, if the file is not
  /// a zip archive, truncated or damaged, or has two entries with the same name.
  explicit ZipReader(std::shared_ptr<const Mapping> file);
  /// Like the one above, for an archive inside the file: `bytes` are part of the mapping.
  ZipReader(std::shared_ptr<const Mapping> file, std::string_view bytes);

  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return entries_.contains(name); }
  /// The bytes of an entry, not yet read: Storage::verify() checks them. Throws Error if there is no such entry or it
  /// is compressed.
  StoragePtr open(const std::string& name) const;

 private:
  struct Entry {
    std::uint64_t begin = 0, size = 0;
    std::uint32_t crc = 0;
    bool stored = false;
  };
  std::shared_ptr<const Mapping> file_;
  std::string_view archive_;
  std::map<std::string, Entry> entries_;
};

}  // namespace zs::tensorfile
