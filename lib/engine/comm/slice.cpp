// SPDX-License-Identifier: Apache-2.0
#include "comm/group.hpp"

namespace zs::comm {

Slice slice(std::int64_t n, std::int64_t rank, std::int64_t ranks) {
  return {n * rank / ranks, n * (rank + 1) / ranks};
}

}  // namespace zs::comm
