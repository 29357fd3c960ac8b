// SPDX-License-Identifier: Apache-2.0
#include "base/mapped.hpp"

#include <atomic>
#include <mutex>

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

const char* mapped_file(const void* address) noexcept {
  for (const Entry* entry = entries; entry; entry = entry->next) {
    const char* const begin = entry->begin;
    const char* const at = static_cast<const char*>(address);
    if (begin && at >= begin && at < begin + entry->size) return entry->path.c_str();
  }
  return nullptr;
}

}  // namespace zs
