// SPDX-License-Identifier: Apache-2.0
#include "comm/nodes.hpp"

#include <algorithm>

#include "device/tensor.hpp"

namespace zs::comm {

using device::View;

int ranks_of_first_node(const Group& group) {
  int ranks = 1;
  while (ranks < group.size() && group.host(ranks) == group.host(0)) ++ranks;
  return ranks;
}

int ranks_of_node(const Group& group) {
  const int ranks = ranks_of_first_node(group);
  if (ranks == 1 || ranks == group.size() || group.size() % ranks != 0) return 0;
  for (int rank = 0; rank < group.size(); ++rank) {
    const int first = rank / ranks * ranks;
    if (group.host(rank) != group.host(first)) return 0;
    if (rank == first && rank > 0 && group.host(rank) == group.host(rank - 1)) return 0;
  }
  return ranks;
}

Nodes::Nodes(std::unique_ptr<Group> node, std::unique_ptr<Group> across)
    : node_(std::move(node)), across_(std::move(across)) {}

std::unique_ptr<Nodes> Nodes::of(Group& group, int ranks) {
  auto node = group.split(group.rank() / ranks, "ranks of a node");
  auto across = group.split(group.rank() % ranks, "ranks across nodes");
  return std::make_unique<Nodes>(std::move(node), std::move(across));
}

namespace {

using Terms = std::vector<std::vector<tree::Leaves>>;

/// The terms of ranks [first, first + count).
tree::Addends addends_of(const tree::Addends& addends, std::int64_t first, std::int64_t count) {
  const auto begin = addends.terms.begin() + static_cast<std::ptrdiff_t>(first);
  return tree::Addends::of(Terms(begin, begin + static_cast<std::ptrdiff_t>(count)), addends.leaves);
}

/// A term's slices in the order [place in the node][node], each as long as the longest, `piece`: what a rank of the
/// node gets for its likes on all nodes is one piece of memory.
void turn(const View& term, std::int64_t L, std::int64_t M, std::int64_t piece, const View& turned) {
  const std::int64_t ranks = L * M;
  if (term.count == ranks * piece) {
    device::tensor(turned).view({L, M, piece}).copy_(device::tensor(term).view({M, L, piece}).transpose(0, 1));
    return;
  }
  device::clear(turned);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const Slice from = slice(term.count, rank, ranks);
    const std::int64_t to = (rank % L * M + rank / L) * piece;
    device::copy(turned.part(to, to + from.size()), term.part(from.begin, from.end));
  }
}

}  // namespace

void Nodes::reduce_scatter(const Summands& summands, const View& mine, const std::string& what) {
  const std::int64_t L = node_->size(), M = across_->size(), ranks = L * M,
                     piece = (summands.count + ranks - 1) / ranks;
  Terms by_node;
  for (std::int64_t node = 0; node < M; ++node) by_node.push_back(addends_of(summands.addends, node * L, L).sums);
  Summands in_node{ranks * piece, summands.type, addends_of(summands.addends, across_->rank() * L, L)};
  const auto terms = std::ssize(summands.terms), sums = std::ssize(in_node.addends.sums),
             results = std::ssize(summands.addends.sums);
  const device::Buffer turned = node_->allocate(terms * ranks * piece * device::size(summands.type)),
                       of_node = across_->allocate(sums * M * piece * 4), sum = across_->allocate(results * piece * 4);
  for (std::int64_t i = 0; i < terms; ++i) {
    const View buffer = turned.view(summands.type, terms * ranks * piece);
    in_node.terms.push_back(buffer.part(i * ranks * piece, (i + 1) * ranks * piece));
    turn(summands.terms[static_cast<std::size_t>(i)], L, M, piece, in_node.terms.back());
  }
  const View part = of_node.view(device::Type::float32, sums * M * piece),
             whole = sum.view(device::Type::float32, results * piece);
  node_->reduce_scatter(in_node, part, what + " in a node")->wait();
  Summands between{
      M * piece, device::Type::float32, {std::move(by_node), summands.addends.sums, summands.addends.leaves}};
  for (std::int64_t i = 0; i < sums; ++i) between.terms.push_back(part.part(i * M * piece, (i + 1) * M * piece));
  across_->reduce_scatter(between, whole, what + " between nodes")->wait();
  const std::int64_t size = mine.count / std::max<std::int64_t>(1, results);
  for (std::int64_t i = 0; i < results; ++i)
    device::copy(mine.part(i * size, (i + 1) * size), whole.part(i * piece, i * piece + size));
}

}  // namespace zs::comm
