// SPDX-License-Identifier: Apache-2.0
// How far each rank is in the collectives through shared memory.
#pragma once
#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "comm/shared_memory.hpp"
#include "device/view.hpp"

namespace zs::comm {

/// A rank's message to the others about a collective.
struct Entry {
  enum class Kind { none, reduce_scatter, all_gather, all_to_all };
  static constexpr std::size_t kMostParts = 16;
  Kind kind = Kind::none;
  device::Type type{};
  std::int64_t count = 0;  ///< numbers of all parts
  std::size_t parts = 1;
  std::array<std::int64_t, kMostParts> data{SharedMemory::kNotShared};  ///< the offset of each in the rank's segment
  std::array<std::int64_t, kMostParts> to{}, from{};  ///< of an all-to-all: bytes to each rank, and from each
  /// Whether two ranks are in the same collective.
  bool matches(const Entry& other) const {
    return kind == other.kind && type == other.type && count == other.count && parts == other.parts;
  }
};

/// A table in shared memory with a row for each rank and a column for each of the latest collectives, which are
/// numbered from 0; and a futex for each rank, which another rank signals after writing. A rank writes its own row and
/// reads the others.
class CollectiveTable {
 public:
  /// COLLECTIVE. Throws zs::Error if there is no room.
  CollectiveTable(SharedMemory& memory, MPI_Comm comm);

  /// False while a rank may still read this one's entry for an earlier collective in the same column.
  bool is_free(std::int64_t number) const;
  /// This rank has reached collective `number`. REQUIRES: is_free(number).
  void arrive(std::int64_t number, const Entry& entry);
  /// This rank has read everything it needs from the others.
  void leave(std::int64_t number);
  bool has_arrived(int rank, std::int64_t number) const;
  bool has_left(int rank, std::int64_t number) const;
  /// REQUIRES: has_arrived(rank, number), and this rank has not left it.
  const Entry& entry(int rank, std::int64_t number) const { return slot(rank, number).entry; }

  /// Sleeps until another rank writes, or for `microseconds`; returns at once if one wrote since the last call.
  void sleep(int microseconds);

 private:
  static constexpr std::int64_t kColumns = 128;
  struct alignas(64) Slot {
    std::atomic<std::int64_t> arrived{0}, left{0};  // the number of the collective, plus one
    Entry entry;
  };
  struct Row {
    std::array<Slot, kColumns> slots;
    alignas(64) std::atomic<std::uint32_t> wakeups{0};
    std::atomic<std::uint32_t> asleep{0};
  };
  static_assert(std::atomic<std::int64_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);
  Row& row(int rank) const { return *rows_[static_cast<std::size_t>(rank)]; }
  Slot& slot(int rank, std::int64_t number) const {
    return row(rank).slots[static_cast<std::size_t>(number % kColumns)];
  }
  void wake_others();

  int rank_;
  std::shared_ptr<std::byte> block_;
  std::vector<Row*> rows_;          // by rank
  std::uint32_t seen_wakeups_ = 0;  // the count when it last slept
};

}  // namespace zs::comm
