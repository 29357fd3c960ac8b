// SPDX-License-Identifier: Apache-2.0
#include "tensorfile/storage.hpp"

#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <utility>

#include "base/error.hpp"

namespace zs::tensorfile {

StoragePtr Storage::borrow(std::string_view bytes) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->size_ = bytes.size();
  storage->bytes_ = bytes;
  return storage;
}

StoragePtr Storage::own(std::string bytes) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->owned_ = std::move(bytes);
  storage->bytes_ = storage->owned_;
  storage->size_ = storage->bytes_.size();
  return storage;
}

StoragePtr Storage::produce(std::uint64_t size, Producer producer) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->size_ = size;
  storage->producer_ = std::move(producer);
  return storage;
}

StoragePtr Storage::map(std::shared_ptr<const Mapping> file, std::string_view bytes, std::string entry,
                        std::optional<std::uint32_t> crc) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->size_ = bytes.size();
  storage->bytes_ = bytes;
  storage->file_ = std::move(file);
  storage->entry_ = std::move(entry);
  storage->crc_ = crc;
  return storage;
}

std::string_view Storage::bytes() const {
  if (producer_) throw Error("a tensor that is produced while it is written cannot be read back");
  return bytes_;
}

void Storage::stream(const Sink& sink, const std::string& place) const {
  if (!producer_) return sink(bytes_);
  std::uint64_t given = 0;
  producer_([&](std::string_view bytes) {
    given += bytes.size();
    if (given > size_) throw Error(place, 0, "a tensor gave more than its " + std::to_string(size_) + " bytes");
    sink(bytes);
  });
  if (given != size_) {
    throw Error(place, 0, "a tensor gave " + std::to_string(given) + " of its " + std::to_string(size_) + " bytes");
  }
}

bool Storage::verify() const {
  if (!crc_) return false;
  constexpr std::size_t kPiece = 1 << 25;  // so that a large tensor does not fill the memory
  std::uint32_t crc = 0;
  for (std::size_t at = 0; at < bytes_.size(); at += kPiece) {
    crc = crc32_of(bytes_.substr(at, kPiece), crc);
    if (bytes_.size() > kPiece) forget();
  }
  if (crc != *crc_) {
    throw Error(file_->path(), 0, entry_ + ": checksum mismatch, the file is damaged");
  }
  return true;
}

void Storage::forget() const {
  constexpr std::size_t kWorth = 1 << 16;  // fewer bytes take less memory than the call takes time
  if (!file_ || bytes_.size() < kWorth) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes_.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes_.data()) + bytes_.size();
  // Only a hint: if the system ignores it, the pages stay.
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

std::uint32_t crc32_of(std::string_view bytes, std::uint32_t crc) {
  return static_cast<std::uint32_t>(::crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace zs::tensorfile
