// SPDX-License-Identifier: Apache-2.0
#include "tree/tree.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace zs::tree {
namespace {

/// The definition: a range is a node if it is the whole, or in a half.
bool is_node(Leaves range, Leaves node) {
  if (range == node) return true;
  if (node.size() < 2) return false;
  const std::int64_t middle = node.begin + left_of(node.size());
  return range.end <= middle     ? is_node(range, {node.begin, middle})
         : range.begin >= middle ? is_node(range, {middle, node.end})
                                 : false;
}

TEST_CASE("a range of leaves is whole nodes, in order, as few as there can be, at most 2 log2 of the leaves") {
  for (std::int64_t leaves = 1; leaves <= 33; ++leaves) {
    for (std::int64_t begin = 0; begin < leaves; ++begin) {
      for (std::int64_t end = begin + 1; end <= leaves; ++end) {
        CAPTURE(leaves);
        CAPTURE(begin);
        CAPTURE(end);
        const auto parts = nodes({begin, end}, leaves);
        std::int64_t at = begin;
        Partials one_by_one(leaves);
        for (std::int64_t leaf = begin; leaf < end; ++leaf) one_by_one.add({leaf, leaf + 1});
        bool are_nodes = true, is_fewest = true;
        for (std::size_t i = 0; i < parts.size(); ++i) {
          are_nodes = are_nodes && parts[i].begin == at && is_node(parts[i], {0, leaves});
          at = parts[i].end;
          if (i > 0) is_fewest = is_fewest && !is_node({parts[i - 1].begin, parts[i].end}, {0, leaves});
        }
        CHECK(are_nodes);
        CHECK(is_fewest);
        CHECK(at == end);
        CHECK(static_cast<double>(parts.size()) <= std::max(1.0, 2 * std::log2(leaves)));
        CHECK(one_by_one.nodes() == parts);
      }
    }
  }
}

TEST_CASE("halves of a node are told from neighbours") {
  for (std::int64_t leaves = 2; leaves <= 20; ++leaves) {
    for (std::int64_t begin = 0; begin < leaves; ++begin) {
      for (std::int64_t middle = begin + 1; middle < leaves; ++middle) {
        for (std::int64_t end = middle + 1; end <= leaves; ++end) {
          const bool halves = is_node({begin, end}, {0, leaves}) && middle - begin == left_of(end - begin);
          CHECK(are_halves({begin, middle}, {middle, end}, leaves) == halves);
        }
      }
    }
  }
}

TEST_CASE("ranks that each bring a whole subtree bring one term") {
  for (const int ranks : {1, 2, 3, 5, 6, 7, 8, 12, 100}) {
    for (const std::int64_t each : {1, 2, 4, 8}) {
      std::vector<std::vector<Leaves>> terms;
      for (std::int64_t rank = 0; rank < ranks; ++rank)
        terms.push_back(nodes({rank * each, (rank + 1) * each}, ranks * each));
      const Addends addends = Addends::of(terms, ranks * each);
      CHECK(addends.most() == 1);
      CHECK(addends.count() == static_cast<std::size_t>(ranks));
      CHECK(addends.sums == std::vector<Leaves>{{0, ranks * each}});
    }
  }
}

}  // namespace
}  // namespace zs::tree
