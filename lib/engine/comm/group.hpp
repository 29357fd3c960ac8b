// SPDX-License-Identifier: Apache-2.0
// A group of ranks and its collectives. Reductions add in the canonical
// order of device/tree.hpp with any transport, so the bits do not depend
// on it. Every wait has a deadline: a rank that dies or hangs is named.
#pragma once
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "device/memory.hpp"
#include "tree/tree.hpp"

namespace zs::comm {

/// The elements [begin, end) of n that `rank` of `ranks` owns: balanced to one element, no padding, and nested:
/// a rank of N/2 owns exactly what two neighbours of N own. begin = floor(n * rank / ranks).
struct Slice {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
Slice slice(std::int64_t n, std::int64_t rank, std::int64_t ranks);
/// The index of a rank's slice if each `among` consecutive ranks divide the memory: the slices of the first rank of
/// each such set come first, then the slices of the second.
inline int place_of(int rank, int ranks, int among) { return rank % among * (ranks / among) + rank / among; }

/// Tiles are slices of n by a fixed number. If the number of ranks is a power of two up to it, tiles are nested in the
/// slice of every rank, and results defined by tiles do not depend on the number of ranks. Otherwise ranks share a tile
/// (zero/norm.hpp).
inline constexpr std::int64_t kTiles = 256;

/// A collective under way. It begins behind what the device was given before it, and the memory given to it must stay
/// as it is until wait() has returned.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Completes it for all later work of the device: on a CPU the host waits, on a GPU LibTorch's stream does. Throws
  /// zs::Error, which names the late rank, its host and the collective, after the group's timeout.
  virtual void wait() = 0;
  /// Makes progress without blocking; true once wait() would return at once.
  virtual bool test() = 0;
};
using Work = std::unique_ptr<Pending>;

/// One tensor of an all-gather: `mine` of each rank goes into its slice of `full`.
struct Gathered {
  device::View mine, full;
};

/// The operands of a reduction. Only `terms` differs between ranks: each rank has its own.
struct Summands {
  std::int64_t count = 0;             ///< numbers of a term
  device::Type type{};                ///< of all terms
  tree::Addends addends;              ///< which nodes of the tree each rank brings, and which sums they make up
  std::vector<device::View> terms{};  ///< this rank's: `count` numbers for each of its nodes
};

/// The places of a part of each sum, where `mine` has the whole slice `own` of each.
std::vector<device::View> parts_of_sums(const device::View& mine, std::size_t sums, Slice own, Slice part);

/// The settings of a new group.
struct Options {
  double timeout = 50;    ///< seconds that a collective waits for a rank before it throws
  int ranks_of_host = 0;  ///< for in_process(): the simulated number of ranks per host; 0: all on this one
};

class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The host of a rank, for messages.
  virtual const std::string& host(int rank) const = 0;

  /// The device of the memory that collectives move.
  virtual device::Device device() const { return {}; }
  /// Memory that the collectives move fastest (of a window shared by the ranks of a host, where there is one), aligned
  /// to 64 bytes, not initialised; it must go before the group does. Ordinary memory of the device is allowed in every
  /// collective too; what counts is where `full` of reduce_scatter and `mine` or `full` of all_gather lie. Not
  /// collective.
  virtual device::Buffer allocate(std::int64_t bytes) = 0;

  /// mine = for each sum, this rank's slice, float32: the slices of all ranks' terms, added in the order of the
  /// canonical tree. Terms of 16 bits are sent unchanged, and the receiver widens them. `mine` may begin at this rank's
  /// slice of its first term if that is float32 and there is one sum; otherwise it must not overlap the terms. Errors
  /// name the collective by `what` ("reduce-scatter of h.2"). REQUIRES: mine.count is the slice's size for each sum.
  /// COLLECTIVE.
  virtual Work reduce_scatter(const Summands& own, const device::View& mine, const std::string& what) = 0;
  /// The same of one leaf of each rank: mine = their tree sum. COLLECTIVE.
  Work reduce_scatter(const device::View& full, const device::View& mine, const std::string& what) {
    return reduce_scatter({full.count, full.type, tree::Addends::one_each(size()), {full}}, mine, what);
  }

  /// full[slice of r) = mine of rank r, for every r, in one type. `mine` may be this rank's place in `full`.
  /// REQUIRES: mine.count is the slice's size. COLLECTIVE.
  Work all_gather(const device::View& mine, const device::View& full, const std::string& what) {
    const Gathered one{mine, full};
    return all_gather_coalesced({&one, 1}, what);
  }
  /// Several all-gathers as one collective, which is started and waited for once. REQUIRES: the same ones, in the same
  /// type and order, on every rank. COLLECTIVE.
  virtual Work all_gather_coalesced(std::span<const Gathered> all, const std::string& what) = 0;

  /// from[r] = to[this rank] of rank r, for every r, in one type; any counts, also 0. Received data overlaps nothing
  /// else. REQUIRES: a part for each rank, and from[r] has the length that rank r sends: another length is an error
  /// that names the rank. COLLECTIVE.
  virtual Work all_to_all(std::span<const device::View> to, std::span<const device::View> from,
                          const std::string& what) = 0;
  /// The same of equal parts: received = full[slice of this rank) of rank 0, then of rank 1, and so on. REQUIRES: the
  /// number of ranks divides full.count, and received.count is full.count. COLLECTIVE.
  Work all_to_all(const device::View& full, const device::View& received, const std::string& what) {
    std::vector<device::View> to, from;
    for (int other = 0; other < size(); ++other) {
      const Slice part = slice(full.count, other, size());
      to.push_back(full.part(part.begin, part.end)), from.push_back(received.part(part.begin, part.end));
    }
    return all_to_all(to, from, what);
  }

  /// Small blobs of all ranks, by rank; sizes may differ.
  /// Control traffic: not counted in bytes_sent(). COLLECTIVE.
  virtual std::vector<std::string> all_gather_object(const std::string& blob, const std::string& what) = 0;
  /// The same for values of a trivially copyable type.
  template <typename T>
  std::vector<std::vector<T>> all_gather(std::span<const T> mine, const std::string& what) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<std::vector<T>> all;
    for (const std::string& its :
         all_gather_object(std::string(reinterpret_cast<const char*>(mine.data()), mine.size_bytes()), what)) {
      all.emplace_back(its.size() / sizeof(T));
      if (!its.empty()) std::memcpy(all.back().data(), its.data(), its.size());
    }
    return all;
  }

  /// A group of the ranks with the same `colour` (for example the ranks of a node), in their order here; errors use the
  /// rank numbers of this group. Collectives of both may be in flight. Destroy it before this group. COLLECTIVE.
  virtual std::unique_ptr<Group> split(int colour, const std::string& what) = 0;

  /// Payload bytes that this rank has sent in reduce_scatter, all_gather and all_to_all of this group.
  virtual std::int64_t bytes_sent() const = 0;
  /// The part of these bytes that went to other hosts.
  virtual std::int64_t bytes_between_nodes() const = 0;
  /// The number of these collectives that this rank has started.
  virtual std::int64_t collectives() const = 0;

  /// Ends the job of all ranks at once with status 2. May return in an in-process group.
  virtual void abort() = 0;
};

/// Throws zs::Error unless an all-to-all has a part for each rank on both sides, and for this rank itself as much on
/// either.
void require_parts(const Group& group, std::span<const device::View> to, std::span<const device::View> from,
                   const std::string& what);

/// For tests (in_process_test.cpp): a group for each of `ranks` threads. If one throws, the others' waits throw too.
std::vector<std::unique_ptr<Group>> in_process(int ranks, const Options& options = {});

/// A group of one rank, without any thread or MPI.
std::unique_ptr<Group> single(const Options& options = {});

/// Runs `body` on `ranks` threads, each with its group of in_process(ranks); returns when all have ended. A rank that
/// throws aborts the group; the first exception is rethrown here.
void run_in_process(int ranks, const std::function<void(Group&)>& body, const Options& options = {});

/// The ranks started by mpirun or srun, or by torchrun and similar launchers, whose ranks meet at a store without MPI;
/// single() if there is one or no launcher. Calls MPI_Init_thread, and MPI_Finalize when the group and all its work are
/// destroyed, except during an exception. Call it once per process. Throws zs::Error if the launcher announces more
/// tasks than MPI finds ("N times rank 0 of 1").
std::unique_ptr<Group> mpi(const Options& options = {});

/// Ends the job of all MPI ranks with status 2, also after an exception has destroyed the group; does nothing without
/// MPI. Call it after the error was reported.
void abort_job() noexcept;

/// all_gather() of one value per rank.
template <typename T>
std::vector<T> exchange_values(Group& group, const T& value, const std::string& what) {
  std::vector<T> values;
  for (const std::vector<T>& its : group.all_gather(std::span<const T>(&value, 1), what)) values.push_back(its.at(0));
  return values;
}

}  // namespace zs::comm
