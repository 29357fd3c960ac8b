// SPDX-License-Identifier: Apache-2.0
#include "comm/shared_collective.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/number.hpp"

namespace zs::comm {

CollectiveTable::CollectiveTable(SharedMemory& memory, MPI_Comm comm)
    : rank_(memory.rank()), block_(memory.allocate(sizeof(Row))) {
  std::int64_t offset = block_ ? memory.locate(block_.get(), 0) : SharedMemory::kNotShared;
  if (block_) new (block_.get()) Row;
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(memory.ranks()));
  check_mpi(MPI_Allgather(&offset, 1, MPI_INT64_T, offsets.data(), 1, MPI_INT64_T, comm), "MPI_Allgather");
  for (int rank = 0; rank < memory.ranks(); ++rank) {
    offset = offsets[static_cast<std::size_t>(rank)];
    if (offset == SharedMemory::kNotShared) throw Error("/dev/shm is full: no shared memory for the collectives");
    rows_.push_back(reinterpret_cast<Row*>(memory.address(rank, offset)));
  }
}

bool CollectiveTable::is_free(std::int64_t number) const {
  if (number < kColumns) return true;
  for (int rank = 0; rank < static_cast<int>(rows_.size()); ++rank) {
    if (!has_left(rank, number - kColumns)) return false;
  }
  return true;
}

void CollectiveTable::arrive(std::int64_t number, const Entry& entry) {
  slot(rank_, number).entry = entry;
  slot(rank_, number).arrived.store(number + 1, std::memory_order_release);
  wake_others();
}

void CollectiveTable::leave(std::int64_t number) {
  slot(rank_, number).left.store(number + 1, std::memory_order_release);
  wake_others();
}

// A rank that is about to sleep says so before the kernel compares its wakeups with those that it has seen, so
// either it sees the new count or the writer sees it asleep.
void CollectiveTable::wake_others() {
  for (Row* row : rows_) {
    if (row == &this->row(rank_)) continue;
    row->wakeups.fetch_add(1);
    if (row->asleep.load()) syscall(SYS_futex, &row->wakeups, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
}

void CollectiveTable::sleep(int microseconds) {
  Row& local = row(rank_);
  const timespec time{0, microseconds * 1000L};
  local.asleep.store(1);
  syscall(SYS_futex, &local.wakeups, FUTEX_WAIT, seen_wakeups_, &time, nullptr, 0);
  local.asleep.store(0);
  seen_wakeups_ = local.wakeups.load();
}

bool CollectiveTable::has_arrived(int rank, std::int64_t number) const {
  return slot(rank, number).arrived.load(std::memory_order_acquire) > number;
}

bool CollectiveTable::has_left(int rank, std::int64_t number) const {
  return slot(rank, number).left.load(std::memory_order_acquire) > number;
}

SharedCollective::SharedCollective(std::shared_ptr<SharedMemory> memory, std::shared_ptr<CollectiveTable> table,
                                   std::int64_t number, const Entry& entry, Work work,
                                   std::unique_ptr<Collective> messages)
    : Collective(messages->what()),
      memory_(std::move(memory)),
      table_(std::move(table)),
      number_(number),
      entry_(entry),
      work_(std::move(work)),
      messages_(std::move(messages)) {}

bool SharedCollective::advance() {
  bool moved = false;
  while (!done() && step()) moved = true;
  return moved;
}

bool SharedCollective::all(bool (CollectiveTable::*reached)(int, std::int64_t) const) const {
  for (int rank = 0; rank < memory_->ranks(); ++rank) {
    if (!(*table_.*reached)(rank, number_)) return false;
  }
  return true;
}

// One transition; false if it must wait.
bool SharedCollective::step() {
  switch (state_) {
    case State::queueing:
      if (!table_->is_free(number_)) return false;
      table_->arrive(number_, entry_);
      state_ = State::arriving;
      return true;
    case State::arriving:
      if (!all(&CollectiveTable::has_arrived)) return false;
      begin();
      return true;
    case State::messages:
      if (!messages_->done()) return messages_->advance();
      state_ = State::done;
      return true;
    case State::leaving:
      if (!all(&CollectiveTable::has_left)) return false;
      state_ = State::done;
      return true;
    case State::done:
      break;
  }
  return false;
}

void SharedCollective::begin() {
  std::vector<std::byte*> data;
  for (int rank = 0; rank < memory_->ranks(); ++rank) {
    const Entry& theirs = table_->entry(rank, number_);
    if (!theirs.matches(entry_)) {
      throw Error("rank " + std::to_string(rank) + " is in another collective, over " + to_text(theirs.count) +
                  " elements where this rank has " + to_text(entry_.count));
    }
    if (entry_.kind == Entry::Kind::all_to_all) {
      const auto sent = theirs.to[static_cast<std::size_t>(memory_->rank())];
      const auto expected = entry_.from[static_cast<std::size_t>(rank)];
      if (sent != expected)
        throw Error(length_text(rank, static_cast<std::size_t>(sent), static_cast<std::size_t>(expected)));
    }
    for (std::size_t i = 0; i < theirs.parts; ++i) {
      if (theirs.data[i] != SharedMemory::kNotShared) data.push_back(memory_->address(rank, theirs.data[i]));
    }
  }
  const bool shared = data.size() == static_cast<std::size_t>(memory_->ranks()) * entry_.parts;
  if (shared) work_(data);
  table_->leave(number_);
  state_ = shared ? State::leaving : State::messages;
}

std::vector<int> SharedCollective::late() const {
  if (state_ == State::messages) return messages_->late();
  const auto reached = state_ == State::leaving ? &CollectiveTable::has_left : &CollectiveTable::has_arrived;
  std::vector<int> ranks;
  for (int rank = 0; rank < memory_->ranks(); ++rank) {
    if (!(*table_.*reached)(rank, number_)) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace zs::comm
