// SPDX-License-Identifier: Apache-2.0
#include "base/mapped.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "base/claim.hpp"
#include "base/descriptor.hpp"
#include "base/error.hpp"

namespace zs {
namespace {

// A list that only grows, so that a signal handler can walk it at any moment; entries are used again.
struct Entry {
  std::atomic<const char*> begin = nullptr;  // null: free
  std::size_t size = 0;
  std::string path;
  Entry* next = nullptr;
};

std::atomic<Entry*> entries = nullptr;
std::mutex writing;

}  // namespace

MappedRange::MappedRange(const void* begin, std::size_t size, const std::string& path) {
  const std::scoped_lock lock(writing);
  Entry* entry = entries;
  while (entry && entry->begin.load() != nullptr) entry = entry->next;
  const bool fresh = entry == nullptr;
  if (fresh) entry = new Entry;
  entry->size = size;
  entry->path = path;
  entry->begin = static_cast<const char*>(begin);
  entry_ = entry;
  if (!fresh) return;
  entry->next = entries;
  entries = entry;
}

MappedRange::~MappedRange() { static_cast<Entry*>(entry_)->begin = nullptr; }

std::shared_ptr<const Mapping> Mapping::open(const std::string& path) {
  // Nonblocking: a FIFO is refused below, without waiting for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file < 0) throw Error(path, 0, errno_text());
  note_input(file, path);
  std::shared_ptr<Mapping> mapping(new Mapping);
  mapping->path_ = path;
  struct stat status {};
  std::string wrong;
  if (::fstat(file, &status) != 0) {
    wrong = errno_text();
  } else if (!S_ISREG(status.st_mode)) {
    wrong = S_ISDIR(status.st_mode) ? "is a directory, expected a file" : "is not a regular file, cannot be mapped";
  } else if (status.st_size > 0) {
    const auto size = static_cast<std::size_t>(status.st_size);
    void* const start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
    if (start == MAP_FAILED) {
      wrong = "map: " + errno_text();
    } else {
      mapping->bytes_ = {static_cast<const char*>(start), size};
      mapping->range_ = std::make_unique<MappedRange>(start, size, path);
    }
  }
  if (!wrong.empty()) throw Error(path, 0, wrong);
  return mapping;
}

Mapping::~Mapping() {
  if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

const char* mapped_file(const void* address) noexcept {
  for (const Entry* entry = entries; entry; entry = entry->next) {
    const char* const begin = entry->begin;
    const char* const at = static_cast<const char*>(address);
    if (begin && at >= begin && at < begin + entry->size) return entry->path.c_str();
  }
  return nullptr;
}

}  // namespace zs
