// SPDX-License-Identifier: Apache-2.0
#include "data/sampler.hpp"

#include <xxhash.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "base/error.hpp"

namespace zs::data {

Sampler::Sampler(std::int64_t samples, std::uint64_t seed)
    : samples_(samples), seed_(seed), order_(static_cast<std::size_t>(samples)) {}

std::int64_t Sampler::at(std::int64_t position) {
  if (epoch(position) != epoch_) {
    epoch_ = epoch(position);
    std::iota(order_.begin(), order_.end(), 0);
    std::mt19937_64 random(XXH3_64bits_withSeed(&epoch_, sizeof epoch_, seed_));
    // Not std::shuffle: its order is the library's own affair.
    for (std::size_t i = order_.size(); i > 1; --i) {
      const auto j = static_cast<std::size_t>((static_cast<unsigned __int128>(random()) * i) >> 64);
      std::swap(order_[i - 1], order_[j]);
    }
  }
  return order_[static_cast<std::size_t>(position % samples_)];
}

Windows windows(const std::string& path, std::int64_t tokens, std::int64_t length, double validation) {
  const std::int64_t all = (tokens - 1) / length;
  if (all < 2) {
    throw Error(path, 0,
                "holds " + std::to_string(tokens) + " tokens, too few for sequences of " + std::to_string(length) +
                    ": name more text or a smaller --seq_length");
  }
  const auto held = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(all) * validation));
  return {length, all - held, held};
}

}  // namespace zs::data
