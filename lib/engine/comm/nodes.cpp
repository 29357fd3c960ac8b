// SPDX-License-Identifier: Apache-2.0
#include "comm/nodes.hpp"

#include <bit>

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
  if (ranks == 1 || ranks == group.size() || group.size() % ranks != 0 ||
      !std::has_single_bit(static_cast<unsigned>(ranks)))
    return 0;
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

void Nodes::reduce_scatter(const View& full, const View& mine, const std::string& what) {
  const std::int64_t L = node_->size(), M = across_->size(), ranks = L * M, piece = (full.count + ranks - 1) / ranks;
  // The slices in the order [place in the node][node], each as long as the longest: what a rank of the node gets for
  // its likes on all nodes is one piece of memory.
  const device::Buffer turned = node_->allocate(ranks * piece * device::size(full.type)),
                       of_node = across_->allocate(M * piece * 4), sum = across_->allocate(piece * 4);
  const View leaves = turned.view(full.type, ranks * piece), part = of_node.view(device::Type::float32, M * piece),
             own = sum.view(device::Type::float32, piece);
  if (full.count == ranks * piece) {
    device::tensor(leaves).view({L, M, piece}).copy_(device::tensor(full).view({M, L, piece}).transpose(0, 1));
  } else {
    device::clear(leaves);
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const Slice from = slice(full.count, rank, ranks);
      const std::int64_t to = (rank % L * M + rank / L) * piece;
      device::copy(leaves.part(to, to + from.size()), full.part(from.begin, from.end));
    }
  }
  node_->reduce_scatter(leaves, part, what + " in a node")->wait();
  across_->reduce_scatter(part, own, what + " between nodes")->wait();
  device::copy(mine, own.part(0, mine.count));
}

}  // namespace zs::comm
