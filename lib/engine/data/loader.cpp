// SPDX-License-Identifier: Apache-2.0
#include "data/loader.hpp"

#include <xxhash.h>

#include <cstdint>
#include <future>
#include <numeric>
#include <random>
#include <vector>

namespace zs::data {

/// The order of samples: the numbers 0..n-1, shuffled again in every epoch. It depends only on the seed, not on ranks
/// or accumulation.
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

struct Loader::State {
  struct Leaf {
    std::int64_t step = 0, leaf = 0;
    bool operator==(const Leaf&) const = default;
  };
  const Dataset& dataset;
  std::int64_t batch_size, leaves;
  Sampler order;
  std::vector<std::int64_t> asked, asked_before;  // leaves of this step and of the one before, in their order
  std::int64_t step = 0;
  Leaf ahead;
  std::future<Samples> samples_ahead;  // last: its thread uses the others

  Samples load(Leaf at) {
    const std::int64_t position = ((at.step - 1) * leaves + at.leaf) * batch_size;
    std::vector<Draw> draws;
    for (std::int64_t i = position; i < position + batch_size; ++i) draws.push_back({order.at(i), order.epoch(i)});
    return dataset.read(draws);
  }

  /// The targets in so many leaves.
  std::int64_t targets(Leaf from, std::int64_t count) {
    if (samples_ahead.valid()) samples_ahead.wait();  // its thread uses the order
    const std::int64_t begin = ((from.step - 1) * leaves + from.leaf) * batch_size;
    std::int64_t sum = 0;
    for (std::int64_t i = begin; i < begin + count * batch_size; ++i) sum += dataset.targets(order.at(i));
    return sum;
  }

  /// The next leaf if steps are alike. The first step has no earlier one.
  Leaf next() const {
    if (asked.size() < asked_before.size()) return {step, asked_before[asked.size()]};
    return asked_before.empty() ? Leaf() : Leaf{step + 1, asked.front()};
  }
};

Loader::Loader(const Dataset& dataset, std::int64_t batch_size, std::int64_t leaves, std::uint64_t seed)
    : state_(new State{dataset, batch_size, leaves, Sampler(dataset.size(), seed), {}, {}, 0, {}, {}}) {}
Loader::~Loader() = default;
Loader::Loader(Loader&&) noexcept = default;

std::int64_t Loader::epoch(std::int64_t step) const {
  return state_->order.epoch((step - 1) * state_->leaves * state_->batch_size);
}

std::int64_t Loader::targets(std::int64_t step) const { return state_->targets({step, 0}, state_->leaves); }
std::int64_t Loader::targets(std::int64_t step, std::int64_t leaf) const { return state_->targets({step, leaf}, 1); }

Samples Loader::read(std::int64_t step, std::int64_t leaf) {
  State& s = *state_;
  const State::Leaf wanted{step, leaf};
  Samples samples;
  // One thread at a time reads: the order is made anew in each epoch.
  if (s.samples_ahead.valid()) samples = s.samples_ahead.get();
  if (samples.count == 0 || s.ahead != wanted) samples = s.load(wanted);
  if (step != s.step) s.asked_before = std::exchange(s.asked, {});
  s.step = step;
  s.asked.push_back(leaf);
  if (s.ahead = s.next(); s.ahead.step > 0)
    s.samples_ahead = std::async(std::launch::async, [&s] { return s.load(s.ahead); });
  return samples;
}

}  // namespace zs::data
