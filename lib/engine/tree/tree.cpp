// SPDX-License-Identifier: Apache-2.0
#include "tree/tree.hpp"

#include <algorithm>
#include <optional>

#include "base/error.hpp"

namespace zs::tree {
namespace {

void add_nodes(std::vector<Leaves>& found, Leaves node, Leaves range) {
  if (range.begin >= node.end || range.end <= node.begin) return;
  if (range.begin <= node.begin && node.end <= range.end) {
    found.push_back(node);
    return;
  }
  const std::int64_t middle = node.begin + left_of(node.size());
  add_nodes(found, {node.begin, middle}, range);
  add_nodes(found, {middle, node.end}, range);
}

/// Adjacent nodes have all leaves between them once.
void require_adjacent(Leaves before, Leaves next) {
  if (before.end == next.begin) return;
  const bool lost = before.end < next.begin;
  const std::int64_t from = std::min(before.end, next.begin), to = std::max(before.end, next.begin) - 1;
  throw Error("micro-batch " + std::to_string(from) + (from == to ? "" : " to " + std::to_string(to)) +
              (lost ? " of a step is in no sum" : " of a step is added twice"));
}

}  // namespace

std::vector<Leaves> nodes(Leaves range, std::int64_t leaves) {
  std::vector<Leaves> found;
  add_nodes(found, {0, leaves}, range);
  return found;
}

bool are_halves(Leaves left, Leaves right, std::int64_t leaves) {
  Leaves node{0, leaves};
  while (node.size() > 1) {
    const std::int64_t middle = node.begin + left_of(node.size());
    if (node == Leaves{left.begin, right.end}) return left.end == middle && right.begin == middle;
    node = left.begin < middle ? Leaves{node.begin, middle} : Leaves{middle, node.end};
  }
  return false;
}

std::size_t Partials::add(Leaves node) {
  if (!nodes_.empty()) require_adjacent(nodes_.back(), node);
  std::size_t merges = 0;
  for (; !nodes_.empty() && are_halves(nodes_.back(), node, leaves_); ++merges) {
    node.begin = nodes_.back().begin;
    nodes_.pop_back();
  }
  nodes_.push_back(node);
  return merges;
}

Addends Addends::of(std::vector<std::vector<Leaves>> terms, std::int64_t leaves) {
  std::optional<Leaves> range;
  for (const auto& held : terms) {
    for (const Leaves& node : held) {
      if (range) require_adjacent(*range, node);
      range = {range ? range->begin : node.begin, node.end};
    }
  }
  return {std::move(terms), nodes(range.value_or(Leaves{}), leaves), leaves};
}

Addends Addends::one_each(int ranks) {
  std::vector<std::vector<Leaves>> terms;
  for (std::int64_t rank = 0; rank < ranks; ++rank) terms.push_back({{rank, rank + 1}});
  return of(std::move(terms), ranks);
}

std::size_t Addends::count() const {
  std::size_t count = 0;
  for (const auto& term : terms) count += term.size();
  return count;
}

std::size_t Addends::most() const {
  std::size_t most = 0;
  for (const auto& term : terms) most = std::max(most, term.size());
  return most;
}

bool are_like_leaves(std::span<const Leaves> nodes) {
  const std::int64_t size = nodes.front().size();
  if (!std::has_single_bit(static_cast<std::uint64_t>(size))) return nodes.size() == 1;
  const auto others = nodes.first(nodes.size() - 1);
  return std::all_of(others.begin(), others.end(), [&](const Leaves& node) { return node.size() == size; }) &&
         nodes.back().size() <= size;
}

}  // namespace zs::tree
