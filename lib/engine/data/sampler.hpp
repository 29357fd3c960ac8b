// SPDX-License-Identifier: Apache-2.0
// The order of samples: depends only on the seed, not on ranks or accumulation.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace zs::data {

/// The numbers 0..n-1, shuffled again in every epoch.
class Sampler {
 public:
  Sampler(std::int64_t samples, std::uint64_t seed);

  /// The sample at `position` of the endless sequence of epochs.
  std::int64_t at(std::int64_t position);
  /// The epoch of a position, from 0.
  std::int64_t epoch(std::int64_t position) const { return position / samples_; }
  std::int64_t samples() const { return samples_; }

 private:
  std::int64_t samples_, epoch_ = -1;
  std::uint64_t seed_;
  std::vector<std::int64_t> order_;
};

}  // namespace zs::data
