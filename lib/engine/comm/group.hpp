// SPDX-License-Identifier: Apache-2.0
// A group of ranks and its collectives. Reductions add in the canonical order of device/tree.hpp with any transport, so
// the bits do not depend on it. Every wait has a deadline: a rank that dies or hangs is named.
#pragma once
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "comm/pending.hpp"
#include "comm/slice.hpp"
#include "comm/start.hpp"
#include "device/memory.hpp"
#include "tree/tree.hpp"

namespace zs::comm {

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
  virtual Work reduce_scatter(const Summands& summands, const device::View& mine, const std::string& what) = 0;
  /// The same of one leaf of each rank: mine = their tree sum. COLLECTIVE.
  Work reduce_scatter(const device::View& full, const device::View& mine, const std::string& what);

  /// full[slice of r) = mine of rank r, for every r, in one type. `mine` may be this rank's place in `full`.
  /// REQUIRES: mine.count is the slice's size. COLLECTIVE.
  Work all_gather(const device::View& mine, const device::View& full, const std::string& what);
  /// Several all-gathers as one collective, which is started and waited for once. REQUIRES: the same ones, in the same
  /// type and order, on every rank. COLLECTIVE.
  virtual Work all_gather_coalesced(std::span<const Gathered> gathers, const std::string& what) = 0;

  /// from[r] = to[this rank] of rank r, for every r, in one type; any counts, also 0. Received data overlaps nothing
  /// else. REQUIRES: a part for each rank, and from[r] has the length that rank r sends: another length is an error
  /// that names the rank. COLLECTIVE.
  virtual Work all_to_all(std::span<const device::View> to, std::span<const device::View> from,
                          const std::string& what) = 0;
  /// The same of equal parts: one = full[slice of this rank) of rank 0, then of rank 1, and so on. REQUIRES: the
  /// number of ranks divides full.count, and one.count is full.count. COLLECTIVE.
  Work all_to_all(const device::View& full, const device::View& one, const std::string& what);

  /// Small blobs of all ranks, by rank; sizes may differ. Control traffic: not counted in bytes_sent(). COLLECTIVE.
  virtual std::vector<std::string> all_gather_object(const std::string& blob, const std::string& what) = 0;
  /// The same for values of a trivially copyable type.
  template <typename T>
  std::vector<std::vector<T>> all_gather(std::span<const T> mine, const std::string& what) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<std::vector<T>> values;
    for (const std::string& bytes :
         all_gather_object(std::string(reinterpret_cast<const char*>(mine.data()), mine.size_bytes()), what)) {
      values.emplace_back(bytes.size() / sizeof(T));
      if (!bytes.empty()) std::memcpy(values.back().data(), bytes.data(), bytes.size());
    }
    return values;
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

/// all_gather() of one value per rank.
template <typename T>
std::vector<T> exchange_values(Group& group, const T& value, const std::string& what) {
  std::vector<T> values;
  for (const std::vector<T>& one : group.all_gather(std::span<const T>(&value, 1), what)) values.push_back(one.at(0));
  return values;
}

}  // namespace zs::comm
