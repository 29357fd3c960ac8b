// SPDX-License-Identifier: Apache-2.0
// The samples of each micro-batch of a training: an order that the seed decides, cut into leaves, read ahead.
#pragma once
#include <memory>

#include "data/dataset.hpp"

namespace zs::data {

class Loader {
 public:
  /// A step has `leaves` micro-batches of `batch_size` samples, all ranks together. The data set outlives the loader.
  Loader(const Dataset& dataset, std::int64_t batch_size, std::int64_t leaves, std::uint64_t seed);
  ~Loader();
  Loader(Loader&&) noexcept;

  /// Those of a leaf of a step, which counts from 1. The next that the step before suggests are read meanwhile.
  Samples read(std::int64_t step, std::int64_t leaf);
  /// Targets of all leaves of a step, and of one, as Dataset::targets() counts them.
  std::int64_t targets(std::int64_t step) const;
  std::int64_t targets(std::int64_t step, std::int64_t leaf) const;
  /// The epoch that a step begins in, from 0.
  std::int64_t epoch(std::int64_t step) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zs::data
