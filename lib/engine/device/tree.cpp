// SPDX-License-Identifier: Apache-2.0
#include "device/tree.hpp"

#include <bit>

namespace zs::device {
namespace {

template <typename T>
T scalar_sum(std::span<const T> leaves) {
  if (leaves.size() == 1) return leaves[0];
  const auto left = static_cast<std::size_t>(left_leaves(static_cast<int>(leaves.size())));
  return scalar_sum(leaves.first(left)) + scalar_sum(leaves.subspan(left));
}

}  // namespace

float tree_sum(std::span<const float> leaves) { return scalar_sum(leaves); }
double tree_sum(std::span<const double> leaves) { return scalar_sum(leaves); }

Buffer TreeAccumulator::take() {
  if (free_.empty()) return allocate_(n_ * size(Type::float32));
  Buffer partial = std::move(free_.back());
  free_.pop_back();
  return partial;
}

void TreeAccumulator::add(const View& leaf) {
  // The partial sums are the one bits of count_; adding one merges as many of them as it has trailing ones.
  const int merges = std::countr_one(static_cast<std::uint64_t>(count_));
  ++count_;
  if (merges == 0) {
    partials_.push_back(take());
    return tree_sum({&leaf, 1}, view(partials_.back()));
  }
  const std::size_t first = partials_.size() - static_cast<std::size_t>(merges);
  std::vector<View> levels;
  for (std::size_t i = first; i < partials_.size(); ++i) levels.push_back(view(partials_[i]));
  operations(leaf.device).carry(levels, leaf);
  while (partials_.size() > first + 1) {
    free_.push_back(std::move(partials_.back()));
    partials_.pop_back();
  }
}

View TreeAccumulator::sum() {
  if (partials_.size() == 1) return view(partials_[0]);
  // The lowest levels first: a tree over m leaves splits at the largest power of two below m.
  if (!sum_) sum_ = take();
  View right = view(partials_.back());
  for (std::size_t i = partials_.size() - 1; i-- > 0; right = view(sum_)) {
    const View both[] = {view(partials_[i]), right};
    tree_sum(both, view(sum_));
  }
  return right;
}

void TreeAccumulator::reset() {
  for (Buffer& partial : partials_) free_.push_back(std::move(partial));
  partials_.clear();
  count_ = 0;
}

}  // namespace zs::device
