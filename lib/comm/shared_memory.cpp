// SPDX-License-Identifier: Apache-2.0
#include "comm/shared_memory.hpp"

#include <sys/mman.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>

#include "base/error.hpp"
#include "base/number.hpp"

namespace zs::comm {
namespace {

constexpr std::int64_t kPage = 4096;

std::int64_t round_up(std::int64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// What the file system behind the windows can give; some of it stays for MPI itself.
std::int64_t free_bytes() {
  const char* directory = std::getenv("OMPI_MCA_osc_sm_backing_directory");
  struct statvfs space {};
  if (statvfs(directory ? directory : "/dev/shm", &space) != 0) return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(space.f_bavail) * static_cast<std::int64_t>(space.f_frsize) / 10 * 9;
}

}  // namespace

bool SharedMemory::possible(MPI_Comm comm) {
  MPI_Comm host = MPI_COMM_NULL;
  int ranks = 0, here = 0, smallest = 0;
  check_mpi(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
  MPI_Comm_size(comm, &ranks);
  MPI_Comm_size(host, &here);
  MPI_Comm_free(&host);
  check_mpi(MPI_Allreduce(&here, &smallest, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
  return smallest == ranks;
}

SharedMemory::SharedMemory(MPI_Comm comm) : comm_(comm), capacity_(free_bytes()) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &ranks_);
  windows_.push_back(open(kSlots * std::int64_t{sizeof(Slot)}));
  auto* own = reinterpret_cast<Slot*>(windows_[0].block);
  for (std::int64_t i = 0; i < kSlots; ++i) new (own + i) Slot{};
  // The board of each rank begins where that rank's alignment says.
  const std::int64_t offset = windows_[0].block - windows_[0].bases[static_cast<std::size_t>(rank_)];
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(ranks_));
  check_mpi(MPI_Allgather(&offset, 1, MPI_INT64_T, offsets.data(), 1, MPI_INT64_T, comm), "MPI_Allgather");
  for (std::size_t rank = 0; rank < offsets.size(); ++rank) {
    board_.push_back(reinterpret_cast<Slot*>(windows_[0].bases[rank] + offsets[rank]));
  }
}

void SharedMemory::release() {
  for (Window& window : windows_) check_mpi(MPI_Win_free(&window.handle), "MPI_Win_free");
  windows_.clear();
}

// MPI places the segments of a window as it likes, so a page more than asked for makes room to align.
SharedMemory::Window SharedMemory::open(std::int64_t bytes) {
  Window window{MPI_WIN_NULL, {}, nullptr, round_up(std::max<std::int64_t>(bytes, 1)), true};
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "alloc_shared_noncontig", "true");
  void* base = nullptr;
  const int code = MPI_Win_allocate_shared(window.bytes + kPage, 1, info, comm_, &base, &window.handle);
  MPI_Info_free(&info);
  check_mpi(code, "MPI_Win_allocate_shared");
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  window.block = reinterpret_cast<std::byte*>((address + kPage - 1) / kPage * kPage);
  for (int rank = 0; rank < ranks_; ++rank) {
    MPI_Aint size = 0;
    int unit = 0;
    check_mpi(MPI_Win_shared_query(window.handle, rank, &size, &unit, &base), "MPI_Win_shared_query");
    window.bases.push_back(static_cast<std::byte*>(base));
  }
  return window;
}

bool SharedMemory::has_free(std::int64_t bytes) const {
  return std::any_of(windows_.begin(), windows_.end(), [&](const Window& w) { return !w.used && w.bytes >= bytes; });
}

std::shared_ptr<std::byte> SharedMemory::reuse(std::int64_t bytes) {
  std::size_t best = windows_.size();
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    if (windows_[i].used || windows_[i].bytes < bytes) continue;
    if (best == windows_.size() || windows_[i].bytes < windows_[best].bytes) best = i;
  }
  return lend(best);
}

std::shared_ptr<std::byte> SharedMemory::allocate(std::int64_t bytes, std::int64_t all) {
  reserved_ += all;
  windows_.push_back(open(bytes));
  return lend(windows_.size() - 1);
}

std::shared_ptr<std::byte> SharedMemory::lend(std::size_t window) {
  windows_[window].used = true;
  return {windows_[window].block, [memory = weak_from_this(), window](std::byte* block) {
            const auto alive = memory.lock();
            if (!alive || alive->windows_.empty()) return;
            // The pages go back to the system; the window, whose end would be collective, waits for the next allocate.
            madvise(block, static_cast<std::size_t>(alive->windows_[window].bytes), MADV_REMOVE);
            alive->windows_[window].used = false;
          }};
}

Location SharedMemory::locate(const void* data, std::int64_t bytes) const {
  const auto* begin = static_cast<const std::byte*>(data);
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    const Window& window = windows_[i];
    if (std::less<>()(begin, window.block) || std::less<>()(window.block + window.bytes, begin + bytes)) continue;
    return {static_cast<std::int64_t>(i), begin - window.bases[static_cast<std::size_t>(rank_)]};
  }
  return {};
}

const std::byte* SharedMemory::address(int rank, const Location& location) const {
  return windows_[static_cast<std::size_t>(location.window)].bases[static_cast<std::size_t>(rank)] + location.offset;
}

const SharedMemory::Slot& SharedMemory::slot(int rank, std::int64_t number) const {
  return board_[static_cast<std::size_t>(rank)][number % kSlots];
}

SharedMemory::Slot& SharedMemory::own_slot(std::int64_t number) {
  return board_[static_cast<std::size_t>(rank_)][number % kSlots];
}

void SharedMemory::arrive(std::int64_t number, const Entry& entry) {
  busy_[static_cast<std::size_t>(number % kSlots)] = true;
  own_slot(number).entry = entry;
  own_slot(number).arrived.store(number + 1, std::memory_order_release);
}

void SharedMemory::leave(std::int64_t number) { own_slot(number).left.store(number + 1, std::memory_order_release); }

bool SharedMemory::has_arrived(int rank, std::int64_t number) const {
  return slot(rank, number).arrived.load(std::memory_order_acquire) > number;
}

bool SharedMemory::has_left(int rank, std::int64_t number) const {
  return slot(rank, number).left.load(std::memory_order_acquire) > number;
}

const Entry& SharedMemory::entry(int rank, std::int64_t number) const { return slot(rank, number).entry; }

SharedCollective::SharedCollective(std::shared_ptr<SharedMemory> memory, int rank, int ranks, std::int64_t number,
                                   const Entry& entry, Work work, std::unique_ptr<Collective> messages)
    : Collective(messages->what()),
      memory_(std::move(memory)),
      rank_(rank),
      ranks_(ranks),
      number_(number),
      entry_(entry),
      work_(std::move(work)),
      messages_(std::move(messages)) {}

bool SharedCollective::advance() {
  bool moved = false;
  while (!done() && step()) moved = true;
  return moved;
}

// One transition; false if it must wait.
bool SharedCollective::step() {
  switch (state_) {
    case State::waiting_for_slot:
      if (!memory_->is_free(number_)) return false;
      memory_->arrive(number_, entry_);
      state_ = State::arriving;
      return true;
    case State::arriving:
      for (int rank = 0; rank < ranks_; ++rank) {
        if (!memory_->has_arrived(rank, number_)) return false;
      }
      work();
      return true;
    case State::messages:
      if (!messages_->done()) return messages_->advance();
      memory_->leave(number_);
      state_ = State::leaving;
      return true;
    case State::leaving:
      for (int rank = 0; rank < ranks_; ++rank) {
        if (!memory_->has_left(rank, number_)) return false;
      }
      memory_->finish(number_);
      state_ = State::done;
      return true;
    case State::done:
      break;
  }
  return false;
}

void SharedCollective::work() {
  std::vector<const std::byte*> data;
  for (int rank = 0; rank < ranks_; ++rank) {
    const Entry& theirs = memory_->entry(rank, number_);
    if (theirs.kind != entry_.kind || theirs.n != entry_.n) {
      throw Error("rank " + std::to_string(rank) + " is in another collective, over " + to_text(theirs.n) +
                  " elements where this rank has " + to_text(entry_.n));
    }
    if (theirs.data.window >= 0) data.push_back(memory_->address(rank, theirs.data));
  }
  if (static_cast<int>(data.size()) < ranks_) {
    state_ = State::messages;
    return;
  }
  work_(data);
  memory_->leave(number_);
  state_ = State::leaving;
}

std::vector<int> SharedCollective::late() const {
  if (state_ == State::messages) return messages_->late();
  std::vector<int> ranks;
  for (int rank = 0; rank < ranks_; ++rank) {
    const bool here = state_ == State::leaving ? memory_->has_left(rank, number_) : memory_->has_arrived(rank, number_);
    if (!here) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace zs::comm
