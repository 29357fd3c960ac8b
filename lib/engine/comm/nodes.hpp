// SPDX-License-Identifier: Apache-2.0
// Ranks of several nodes add within their nodes first. What the adjacent ranks of a node bring is a few whole nodes of
// the canonical tree, one where each has a power of two of leaves: the bits are those of Group::reduce_scatter, and
// between two nodes go those sums instead of the ranks' leaves, from each rank of a node to its like.
//
//   sent by a rank, of n numbers on M nodes of L ranks:   within the node  n (L - 1) / L        in the leaves' type,
//                                                                                               for each of its terms
//                                                         between nodes    n (M - 1) / (M L)    in float32, for each
//                                                                                               sum of its node
//   (each slice of n / (M L) is rounded up to a whole number)
#pragma once
#include <memory>

#include "comm/group.hpp"

namespace zs::comm {

/// How many ranks from rank 0 on are on its host: all of them in a job of one node.
int ranks_of_first_node(const Group& group);

/// How many ranks each node has, where they are adjacent, as many on each, above 1, and on more than one node; else 0.
int ranks_of_node(const Group& group);

class Nodes {
 public:
  /// `node`: the ranks of this node, in order; `across`: those with this rank's place in each node, by node.
  Nodes(std::unique_ptr<Group> node, std::unique_ptr<Group> across);
  /// The ranks of `group` in nodes of `ranks`. COLLECTIVE.
  static std::unique_ptr<Nodes> of(Group& group, int ranks);

  /// Like Group::reduce_scatter of all ranks, but complete when it returns. COLLECTIVE.
  void reduce_scatter(const Summands& own, const device::View& mine, const std::string& what);

  std::int64_t bytes_sent() const { return node_->bytes_sent() + across_->bytes_sent(); }
  std::int64_t bytes_between_nodes() const { return across_->bytes_sent(); }

 private:
  std::unique_ptr<Group> node_, across_;
};

}  // namespace zs::comm
