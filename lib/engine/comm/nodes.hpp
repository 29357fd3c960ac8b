// SPDX-License-Identifier: Apache-2.0
// Ranks of several nodes add within their nodes first. The leaves of a node's adjacent ranks form a few whole subtrees
// of the canonical tree, or one if each rank has a power of two of leaves. So the bits equal
// Group::reduce_scatter's. Nodes exchange these partial sums instead of leaves, between ranks of equal local index.
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

/// The number of ranks on this rank's host, from rank 0 on: all of them in a job of one node.
int ranks_of_first_node(const Group& group);

/// The number of ranks on each node, if it is above 1 and the same on all of several nodes, and the ranks of a node are
/// adjacent; else 0.
int ranks_of_node(const Group& group);

class Nodes {
 public:
  /// `node`: the ranks of this node, in order; `across`: those with this rank's place in each node, by node.
  Nodes(std::unique_ptr<Group> node, std::unique_ptr<Group> across);
  /// The ranks of `group` in nodes of `ranks`. COLLECTIVE.
  static std::unique_ptr<Nodes> of(Group& group, int ranks);

  /// Like Group::reduce_scatter of all ranks, but complete when it returns. COLLECTIVE.
  void reduce_scatter(const Summands& summands, const device::View& mine, const std::string& what);

  std::int64_t bytes_sent() const { return node_->bytes_sent() + across_->bytes_sent(); }
  std::int64_t bytes_between_nodes() const { return across_->bytes_sent(); }

 private:
  std::unique_ptr<Group> node_, across_;
};

}  // namespace zs::comm
