// SPDX-License-Identifier: Apache-2.0
// Memory that all ranks of one host see: one MPI-3 shared window, of which each rank lends parts of its own segment and
// reads those of the others. Pages cost memory only once they are lent, so the window may be as large as it can be.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "comm/mpi_transport.hpp"

namespace zs::comm {

class SharedMemory : public std::enable_shared_from_this<SharedMemory> {
 public:
  /// Null unless all ranks of `comm` are on one host that has room for it. COLLECTIVE.
  static std::shared_ptr<SharedMemory> create(MPI_Comm comm);
  /// Frees the window. Without it the end of the process does. COLLECTIVE.
  void release();

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(segments_.size()); }

  /// A block of this rank's segment, aligned to a page and backed by memory; null if there is none. Not collective.
  /// Its data must not be used after release().
  std::shared_ptr<std::byte> allocate(std::int64_t bytes);

  static constexpr std::int64_t kNotShared = -1;
  /// Where [data, data + bytes) lies in this rank's segment, or kNotShared.
  std::int64_t locate(const void* data, std::int64_t bytes) const;
  /// The address, here, of that place in the segment of `rank`. The first block that every rank was lent is at 0.
  std::byte* address(int rank, std::int64_t offset) const { return segments_[static_cast<std::size_t>(rank)] + offset; }

 private:
  SharedMemory() = default;
  void give_back(std::byte* block, std::int64_t bytes);

  MPI_Win window_ = MPI_WIN_NULL;
  int rank_ = 0;
  std::int64_t bytes_ = 0;                     // of a segment
  std::vector<std::byte*> segments_;           // by rank, each at its first whole page
  std::map<std::int64_t, std::int64_t> free_;  // of this rank's segment: offset to bytes, whole pages, not adjacent
};

}  // namespace zs::comm
