// SPDX-License-Identifier: Apache-2.0
#include "base/error.hpp"
#include "comm/group.hpp"

namespace zs::comm {

Slice slice(std::int64_t n, std::int64_t rank, std::int64_t ranks) {
  return {n * rank / ranks, n * (rank + 1) / ranks};
}

std::vector<device::View> parts_of_sums(const device::View& mine, std::size_t sums, Slice own, Slice part) {
  std::vector<device::View> all;
  for (std::size_t i = 0; i < sums; ++i) {
    const std::int64_t begin = static_cast<std::int64_t>(i) * own.size() - own.begin;
    all.push_back(mine.part(begin + part.begin, begin + part.end));
  }
  return all;
}

void require_parts(const Group& group, std::span<const device::View> to, std::span<const device::View> from,
                   const std::string& what) {
  const auto ranks = static_cast<std::size_t>(group.size()), own = static_cast<std::size_t>(group.rank());
  if (to.size() != ranks || from.size() != ranks)
    throw Error(what + ": " + std::to_string(to.size()) + " parts go and " + std::to_string(from.size()) +
                " come, of " + std::to_string(ranks) + " ranks");
  if (to[own].bytes() != from[own].bytes())
    throw Error(what + ": rank " + std::to_string(own) + " has " + std::to_string(to[own].bytes()) +
                " bytes for itself and expects " + std::to_string(from[own].bytes()));
}

}  // namespace zs::comm
