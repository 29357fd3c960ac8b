// SPDX-License-Identifier: Apache-2.0
// The bytes of tensors. Tensors with the same Storage object share memory (tied weights), in a file too.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/mapped.hpp"

namespace zs::tensorfile {

class Storage;
using StoragePtr = std::shared_ptr<const Storage>;

/// Takes the next bytes of a stream.
using Sink = std::function<void(std::string_view)>;
/// Passes all bytes to the sink, in order and in pieces of any size; may throw.
using Producer = std::function<void(const Sink&)>;

class Storage {
 public:
  /// Bytes of the caller, who must keep them until the storage's last use.
  static StoragePtr borrow(std::string_view bytes);
  static StoragePtr own(std::string bytes);
  /// `size` bytes that are generated when written; `producer` runs once per write.
  static StoragePtr produce(std::uint64_t size, Producer producer);
  /// A part of a mapped file; `entry` names it in messages, `crc` is the CRC-32 stored in the file.
  static StoragePtr map(std::shared_ptr<const Mapping> file, std::string_view bytes, std::string entry,
                        std::optional<std::uint32_t> crc);

  std::uint64_t size() const { return size_; }
  /// The bytes, of any alignment. Throws Error for a produced storage.
  std::string_view bytes() const;
  /// Passes all bytes to `sink` in order. Throws Error, which begins with `place`, if a producer does not write size().
  void stream(const Sink& sink, const std::string& place = "") const;
  /// Reads everything and throws Error, "PATH: ENTRY: ...", if the checksum differs. False if there is no checksum,
  /// since the storage is not from a zip archive.
  bool verify() const;
  /// Releases the pages of a mapped file that were read; the next access reads them again.
  void forget() const;

 private:
  Storage() = default;
  std::uint64_t size_ = 0;
  std::string_view bytes_;
  std::string owned_;
  Producer producer_;
  std::shared_ptr<const Mapping> file_;
  std::string entry_;
  std::optional<std::uint32_t> crc_;
};

/// CRC-32 (IEEE, as in zip) of `bytes`, continuing from `crc`.
std::uint32_t crc32_of(std::string_view bytes, std::uint32_t crc = 0);

}  // namespace zs::tensorfile
