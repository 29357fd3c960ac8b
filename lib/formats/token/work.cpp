// SPDX-License-Identifier: Apache-2.0
#include "token/work.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace zs::token {

void share(std::size_t pieces, int threads, const std::function<void(const Take&)>& worker) {
  std::atomic<std::size_t> next = 0;
  std::mutex failing;
  std::exception_ptr failure;
  const Take take = [&](std::size_t& piece) { return (piece = next++) < pieces; };
  const auto run = [&] {
    try {
      worker(take);
    } catch (...) {
      next = pieces;
      const std::scoped_lock lock(failing);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < std::min(pieces, static_cast<std::size_t>(threads)); ++i) helpers.emplace_back(run);
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace zs::token
