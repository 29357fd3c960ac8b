// SPDX-License-Identifier: Apache-2.0
#include "data/sampler.hpp"

#include <xxhash.h>

#include <numeric>
#include <random>

namespace zs::data {

Sampler::Sampler(std::int64_t samples, std::uint64_t seed)
    : samples_(samples), seed_(seed), order_(static_cast<std::size_t>(samples)) {}

std::int64_t Sampler::at(std::int64_t position) {
  if (epoch(position) != epoch_) {
    epoch_ = epoch(position);
    std::iota(order_.begin(), order_.end(), 0);
    std::mt19937_64 random(XXH3_64bits_withSeed(&epoch_, sizeof epoch_, seed_));
    // std::shuffle would not do: its order depends on the library.
    for (std::size_t i = order_.size(); i > 1; --i) {
      const auto j = static_cast<std::size_t>((static_cast<unsigned __int128>(random()) * i) >> 64);
      std::swap(order_[i - 1], order_[j]);
    }
  }
  return order_[static_cast<std::size_t>(position % samples_)];
}

}  // namespace zs::data
