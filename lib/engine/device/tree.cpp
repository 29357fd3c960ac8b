// SPDX-License-Identifier: Apache-2.0
#include "device/tree.hpp"

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

namespace {

/// The terms of one node, and what its partial sums take until they are added.
struct Node {
  std::span<const tree::Leaves> leaves;
  std::span<const View> terms;
  std::vector<Buffer>& scratch;

  Node part(std::size_t begin, std::size_t end) const {
    return {leaves.subspan(begin, end - begin), terms.subspan(begin, end - begin), scratch};
  }
  void sum_to(const View& out) const {
    if (tree::are_like_leaves(leaves)) return tree_sum(terms, out);
    const std::int64_t begin = leaves.front().begin, middle = begin + tree::left_of(leaves.back().end - begin);
    std::size_t split = 1;
    while (leaves[split].begin < middle) ++split;
    const View halves[] = {part(0, split).sum(), part(split, leaves.size()).sum()};
    tree_sum(halves, out);
  }
  View sum() const {
    const View& first = terms.front();
    if (terms.size() == 1 && first.type == Type::float32) return first;
    scratch.push_back(allocate(first.device, first.count * size(Type::float32)));
    const View out = scratch.back().view(Type::float32, first.count);
    sum_to(out);
    return out;
  }
};

}  // namespace

void tree_sums(const tree::Addends& addends, std::span<const View> terms, std::span<const View> out) {
  std::vector<tree::Leaves> leaves;
  for (const auto& list : addends.terms) leaves.insert(leaves.end(), list.begin(), list.end());
  std::vector<Buffer> scratch;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::size_t end = begin;
    while (end < leaves.size() && leaves[end].end <= addends.sums[i].end) ++end;
    Node{std::span(leaves).subspan(begin, end - begin), terms.subspan(begin, end - begin), scratch}.sum_to(out[i]);
    begin = end;
  }
}

void TreeAccumulator::add(tree::Leaves node, const View& sum) {
  const std::size_t merges = partials_.add(node);
  if (merges == 0) {
    if (free_.empty()) free_.push_back(allocate_(n_ * size(Type::float32)));
    buffers_.push_back(std::move(free_.back()));
    free_.pop_back();
    return tree_sum({&sum, 1}, view(buffers_.back()));
  }
  const std::size_t first = buffers_.size() - merges;
  std::vector<View> levels;
  for (std::size_t i = first; i < buffers_.size(); ++i) levels.push_back(view(buffers_[i]));
  operations(sum.device).carry(levels, sum);
  while (buffers_.size() > first + 1) {
    free_.push_back(std::move(buffers_.back()));
    buffers_.pop_back();
  }
}

std::vector<View> TreeAccumulator::sums() const {
  std::vector<View> views;
  for (const Buffer& partial : buffers_) views.push_back(view(partial));
  return views;
}

void TreeAccumulator::reset() {
  for (Buffer& partial : buffers_) free_.push_back(std::move(partial));
  buffers_.clear();
  partials_ = tree::Partials(leaves_);
}

}  // namespace zs::device
