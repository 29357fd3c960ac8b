// SPDX-License-Identifier: Apache-2.0
// Work in pieces, shared by threads.
#pragma once
#include <cstddef>
#include <functional>

namespace zs::token {

/// Calls `worker` in each of `threads` threads (fewer, if there are fewer pieces), which takes numbers below `pieces`
/// from `take` until it says there are no more. What a worker throws ends the work and is thrown here.
using Take = std::function<bool(std::size_t&)>;
void share(std::size_t pieces, int threads, const std::function<void(const Take& take)>& worker);

}  // namespace zs::token
