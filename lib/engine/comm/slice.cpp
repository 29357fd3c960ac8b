// SPDX-License-Identifier: Apache-2.0
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

}  // namespace zs::comm
