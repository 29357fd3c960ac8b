// SPDX-License-Identifier: Apache-2.0
#include "data/loader.hpp"

#include <future>
#include <vector>

#include "data/sampler.hpp"

namespace zs::data {

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
