// SPDX-License-Identifier: Apache-2.0
// The samples of each micro-batch of a training: shuffled by the seed, divided into leaves, read ahead.
#pragma once
#include <memory>

#include "data/dataset.hpp"

namespace zs::data {

class Loader {
 public:
  /// A step has `leaves` micro-batches of `batch_size` samples over all ranks. The data set must outlive the loader.
  Loader(const Dataset& dataset, std::int64_t batch_size, std::int64_t leaves, std::uint64_t seed);
  ~Loader();
  Loader(Loader&&) noexcept;

  /// The samples of a leaf of a step; steps count from 1. Meanwhile reads those predicted to be next.
  Samples read(std::int64_t step, std::int64_t leaf);
  /// Targets of all leaves of a step, and of one, counted by Dataset::targets().
  std::int64_t targets(std::int64_t step) const;
  std::int64_t targets(std::int64_t step, std::int64_t leaf) const;
  /// The epoch in which a step begins, from 0.
  std::int64_t epoch(std::int64_t step) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zs::data
