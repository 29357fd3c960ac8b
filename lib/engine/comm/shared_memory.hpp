// SPDX-License-Identifier: Apache-2.0
// Memory shared by all ranks of a host: one MPI-3 shared window; each rank allocates from its own segment and reads the
// others'. Pages use memory only once allocated, so the window may be as large as possible.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "comm/mpi_transport.hpp"

namespace zs::comm {

class SharedMemory : public std::enable_shared_from_this<SharedMemory> {
 public:
  /// Null unless all ranks of `comm` are on one host with enough room. COLLECTIVE.
  static std::shared_ptr<SharedMemory> create(MPI_Comm comm);
  /// Frees the window; otherwise the end of the process does. COLLECTIVE.
  void release();

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(segments_.size()); }

  /// A block of this rank's segment, page-aligned and backed by memory; null if there is none. Must not be used after
  /// release(). Not collective.
  std::shared_ptr<std::byte> allocate(std::int64_t bytes);

  static constexpr std::int64_t kNotShared = -1;
  /// The offset of [data, data + bytes) in this rank's segment, or kNotShared.
  std::int64_t locate(const void* data, std::int64_t bytes) const;
  /// The local address of that offset in the segment of `rank`. The first block of every rank is at 0.
  std::byte* address(int rank, std::int64_t offset) const { return segments_[static_cast<std::size_t>(rank)] + offset; }

 private:
  SharedMemory() = default;
  void give_back(std::byte* block, std::int64_t bytes);

  MPI_Win window_ = MPI_WIN_NULL;
  int rank_ = 0;
  std::int64_t bytes_ = 0;                     // of a segment
  std::vector<std::byte*> segments_;           // by rank, each at its first complete page
  std::map<std::int64_t, std::int64_t> free_;  // of this rank's segment: offset to bytes, whole pages, not adjacent
};

}  // namespace zs::comm
