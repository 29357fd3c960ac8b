// SPDX-License-Identifier: Apache-2.0
// Memory that all ranks of one host see: MPI-3 shared windows for the buffers, and a board on which each rank writes
// which collective it has come to and where its data lies. Ranks write their own part and read those of the others.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/mpi_transport.hpp"
#include "comm/progress.hpp"

namespace zs::comm {

/// A place in the shared memory of a rank.
struct Location {
  std::int64_t window = -1;  ///< -1: in ordinary memory
  std::int64_t offset = 0;   ///< in bytes
};

/// What a rank tells the others about a collective.
struct Entry {
  std::int64_t kind = 0, n = 0;  ///< to see that all are in the same one
  Location data;
};

/// The windows of a group whose ranks are all on one host.
class SharedMemory : public std::enable_shared_from_this<SharedMemory> {
 public:
  /// COLLECTIVE, as is release().
  explicit SharedMemory(MPI_Comm comm);
  /// Frees the windows. Without it the destructor leaves them to the end of the process.
  void release();

  /// True if all ranks of `comm` are on one host, so that they can have such memory. COLLECTIVE.
  static bool possible(MPI_Comm comm);

  /// Bytes, of all ranks together, that the file system behind the windows can still give. (Beyond that a rank would
  /// die of SIGBUS when it touches them.)
  std::int64_t room() const { return capacity_ - reserved_; }
  /// True if a block that was given back fits.
  bool has_free(std::int64_t bytes) const;
  /// A block that was given back. REQUIRES: has_free(bytes).
  std::shared_ptr<std::byte> reuse(std::int64_t bytes);
  /// A block in a new window, aligned to a page; `all` is the sum of `bytes` over ranks. COLLECTIVE.
  std::shared_ptr<std::byte> allocate(std::int64_t bytes, std::int64_t all);

  /// Where [data, data + bytes) lies in this rank's blocks.
  Location locate(const void* data, std::int64_t bytes) const;
  /// The address here of what lies at `location` of `rank`.
  const std::byte* address(int rank, const Location& location) const;

  /// Collectives are numbered from 0. Only kSlots of them are on the board at once.
  static constexpr std::int64_t kSlots = 128;
  bool is_free(std::int64_t number) const { return !busy_[static_cast<std::size_t>(number % kSlots)]; }
  /// Writes that this rank has come to collective `number`. REQUIRES: is_free(number).
  void arrive(std::int64_t number, const Entry& entry);
  /// Writes that this rank has read all it needs of the others.
  void leave(std::int64_t number);
  /// Its place on the board may be used again. REQUIRES: every rank has left it.
  void finish(std::int64_t number) { busy_[static_cast<std::size_t>(number % kSlots)] = false; }
  bool has_arrived(int rank, std::int64_t number) const;
  bool has_left(int rank, std::int64_t number) const;
  /// REQUIRES: has_arrived(rank, number), and this rank has not left it.
  const Entry& entry(int rank, std::int64_t number) const;

 private:
  struct alignas(64) Slot {
    std::atomic<std::int64_t> arrived, left;  // the number of the collective, plus one
    Entry entry;
  };
  static_assert(std::atomic<std::int64_t>::is_always_lock_free);
  struct Window {
    MPI_Win handle;
    std::vector<std::byte*> bases;  // by rank, as seen here
    std::byte* block;               // this rank's, aligned
    std::int64_t bytes;             // of the block
    bool used;
  };

  Window open(std::int64_t bytes);
  std::shared_ptr<std::byte> lend(std::size_t window);
  const Slot& slot(int rank, std::int64_t number) const;
  Slot& own_slot(std::int64_t number);

  MPI_Comm comm_;
  int rank_ = 0, ranks_ = 1;
  std::int64_t capacity_, reserved_ = 0;  // bytes, of all ranks
  std::vector<Window> windows_;           // the first is the board
  std::vector<Slot*> board_;              // by rank
  std::array<bool, kSlots> busy_{};
};

/// A collective through shared memory: when all ranks have arrived, `work` reads their data in place (addresses by
/// rank) and writes this rank's result; it is done when all have read. If the data of any rank lies in ordinary memory,
/// all ranks run `messages` instead.
class SharedCollective : public Collective {
 public:
  using Work = std::function<void(const std::vector<const std::byte*>& data)>;
  SharedCollective(std::shared_ptr<SharedMemory> memory, int rank, int ranks, std::int64_t number, const Entry& entry,
                   Work work, std::unique_ptr<Collective> messages);

  bool advance() override;
  bool done() const override { return state_ == State::done; }
  std::vector<int> late() const override;

 private:
  enum class State { waiting_for_slot, arriving, messages, leaving, done };
  bool step();
  void work();

  std::shared_ptr<SharedMemory> memory_;
  int rank_, ranks_;
  std::int64_t number_;
  Entry entry_;
  Work work_;
  std::unique_ptr<Collective> messages_;
  State state_ = State::waiting_for_slot;
};

}  // namespace zs::comm
