// SPDX-License-Identifier: Apache-2.0
#include "comm/shared_memory.hpp"

#include <sys/mman.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <functional>

namespace zs::comm {
namespace {

constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kLeast = std::int64_t{1} << 20;  // bytes of a segment, below which it is not worth it

std::int64_t round_up(std::int64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Nine tenths of the space that the file system of the windows has; MPI needs some of it for itself.
std::int64_t free_bytes() {
  const char* directory = std::getenv("OMPI_MCA_osc_sm_backing_directory");
  struct statvfs space {};
  if (statvfs(directory ? directory : "/dev/shm", &space) != 0) return 0;
  return static_cast<std::int64_t>(space.f_bavail) * static_cast<std::int64_t>(space.f_frsize) / 10 * 9;
}

bool on_one_host(MPI_Comm comm) {
  MPI_Comm host = MPI_COMM_NULL;
  int ranks = 0, here = 0, fewest = 0;
  check_mpi(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
  MPI_Comm_size(comm, &ranks);
  MPI_Comm_size(host, &here);
  MPI_Comm_free(&host);
  check_mpi(MPI_Allreduce(&here, &fewest, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
  return fewest == ranks;
}

// Backs the pages with memory now. A file system that is full then says so; a later touch would end in SIGBUS.
bool populate(std::byte* block, std::int64_t bytes) {
  return madvise(block, static_cast<std::size_t>(bytes), MADV_POPULATE_WRITE) == 0 ||
         errno == EINVAL;  // EINVAL: Linux < 5.14
}

}  // namespace

std::shared_ptr<SharedMemory> SharedMemory::create(MPI_Comm comm) {
  if (!on_one_host(comm)) return nullptr;
  std::shared_ptr<SharedMemory> memory(new SharedMemory);
  int ranks = 1, failed = 0, any_failed = 0;
  MPI_Comm_rank(comm, &memory->rank_);
  MPI_Comm_size(comm, &ranks);
  std::int64_t share = free_bytes() / ranks / kPage * kPage;
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &share, 1, MPI_INT64_T, MPI_MIN, comm), "MPI_Allreduce");
  if (share < kLeast) return nullptr;
  memory->bytes_ = share - kPage;
  memory->free_[0] = memory->bytes_;
  void* base = nullptr;
  failed = MPI_Win_allocate_shared(share, 1, MPI_INFO_NULL, comm, &base, &memory->window_) != MPI_SUCCESS;
  check_mpi(MPI_Allreduce(&failed, &any_failed, 1, MPI_INT, MPI_MAX, comm), "MPI_Allreduce");
  if (any_failed) return nullptr;
  // MPI chooses the address of each segment: each rank's blocks begin at the first whole page of its segment.
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  const auto skipped = static_cast<std::int64_t>((address + kPage - 1) / kPage * kPage - address);
  std::vector<std::int64_t> skips(static_cast<std::size_t>(ranks));
  check_mpi(MPI_Allgather(&skipped, 1, MPI_INT64_T, skips.data(), 1, MPI_INT64_T, comm), "MPI_Allgather");
  for (int rank = 0; rank < ranks; ++rank) {
    MPI_Aint size = 0;
    int unit = 0;
    check_mpi(MPI_Win_shared_query(memory->window_, rank, &size, &unit, &base), "MPI_Win_shared_query");
    memory->segments_.push_back(static_cast<std::byte*>(base) + skips[static_cast<std::size_t>(rank)]);
  }
  return memory;
}

void SharedMemory::release() { check_mpi(MPI_Win_free(&window_), "MPI_Win_free"); }

std::shared_ptr<std::byte> SharedMemory::allocate(std::int64_t bytes) {
  bytes = round_up(std::max<std::int64_t>(bytes, 1));
  const auto part = std::find_if(free_.begin(), free_.end(), [&](const auto& free) { return free.second >= bytes; });
  if (part == free_.end()) return nullptr;
  const auto [offset, size] = *part;
  free_.erase(part);
  if (size > bytes) free_[offset + bytes] = size - bytes;
  std::byte* block = address(rank_, offset);
  if (!populate(block, bytes)) {
    give_back(block, bytes);
    return nullptr;
  }
  return {block, [memory = weak_from_this(), bytes](std::byte* returned) {
            // An error unwinds past collectives that the other ranks are still reading for: what they see must stay.
            const auto alive = memory.lock();
            if (alive && alive->window_ != MPI_WIN_NULL && std::uncaught_exceptions() == 0)
              alive->give_back(returned, bytes);
          }};
}

void SharedMemory::give_back(std::byte* block, std::int64_t bytes) {
  madvise(block, static_cast<std::size_t>(bytes), MADV_REMOVE);  // its pages, to the system
  auto part = free_.emplace(block - address(rank_, 0), bytes).first;
  const auto next = std::next(part);
  if (next != free_.end() && part->first + part->second == next->first) {
    part->second += next->second;
    free_.erase(next);
  }
  if (part == free_.begin()) return;
  const auto previous = std::prev(part);
  if (previous->first + previous->second != part->first) return;
  previous->second += part->second;
  free_.erase(part);
}

std::int64_t SharedMemory::locate(const void* data, std::int64_t bytes) const {
  const auto* begin = static_cast<const std::byte*>(data);
  const std::byte* segment = address(rank_, 0);
  if (std::less<>()(begin, segment) || std::less<>()(segment + bytes_, begin + bytes)) return kNotShared;
  return begin - segment;
}

}  // namespace zs::comm
