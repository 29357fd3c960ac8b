// SPDX-License-Identifier: Apache-2.0
// Work divided into pieces, shared by threads.
#pragma once
#include <cstddef>
#include <functional>

namespace zs::token {

/// Calls `worker` in each of `threads` threads (fewer if there are fewer pieces); it takes numbers below `pieces` from
/// `take` until `take` returns false. An exception of a worker stops the work and is rethrown here.
using Take = std::function<bool(std::size_t&)>;
void share(std::size_t pieces, int threads, const std::function<void(const Take& take)>& worker);

}  // namespace zs::token
