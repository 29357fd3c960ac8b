// SPDX-License-Identifier: Apache-2.0
#include "device/tree.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

namespace zs::device {
namespace {

using Values = std::vector<float>;

// Leaves whose sum depends on the order in nearly half of the elements.
std::vector<Values> random_leaves(std::size_t count, std::int64_t n) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<Values> leaves(count, Values(static_cast<std::size_t>(n)));
  for (Values& leaf : leaves) {
    for (float& value : leaf) value = normal(random);
  }
  return leaves;
}

// The definition, one element at a time.
float serial(const std::vector<Values>& leaves, std::size_t begin, std::size_t end, std::size_t i) {
  if (end - begin == 1) return leaves[begin][i];
  const std::size_t half = begin + std::bit_floor(end - begin - 1);
  return serial(leaves, begin, half, i) + serial(leaves, half, end, i);
}

Values serial(const std::vector<Values>& leaves) {
  Values sum(leaves[0].size());
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = serial(leaves, 0, leaves.size(), i);
  return sum;
}

std::size_t differing(const Values& a, const Values& b) {
  std::size_t count = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    count += std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]);
  }
  return count;
}

View view_of(const Values& values) { return view(values.data(), static_cast<std::int64_t>(values.size())); }

std::vector<View> views_of(const std::vector<Values>& leaves) {
  std::vector<View> views(leaves.size());
  std::transform(leaves.begin(), leaves.end(), views.begin(), view_of);
  return views;
}

Values tree(const std::vector<Values>& leaves) {
  Values sum(leaves[0].size());
  tree_sum(views_of(leaves), view_of(sum));
  return sum;
}

Buffer on_heap(std::int64_t bytes) { return allocate({}, bytes); }

/// Adds a leaf behind those before.
void add(TreeAccumulator& accumulator, const Values& leaf, std::int64_t index) {
  accumulator.add({index, index + 1}, view_of(leaf));
}

/// REQUIRES: all leaves are added.
Values copy_of(const TreeAccumulator& accumulator) {
  const View sum = accumulator.sums().at(0);
  return Values(sum.as<float>(), sum.as<float>() + sum.count);
}

TEST_CASE("the tree sum is the definition, for every count of leaves and awkward lengths") {
  for (const std::size_t count : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 31, 32, 64, 100}) {
    for (const std::int64_t n : {1, 7, 64, 2047, 2049, 5000}) {
      const auto leaves = random_leaves(count, n);
      CHECK(differing(tree(leaves), serial(leaves)) == 0);
    }
  }
}

TEST_CASE("the sum may be written over any of the leaves") {
  for (const std::size_t count : {2, 4, 8, 16, 24}) {
    const auto leaves = random_leaves(count, 4100);
    const Values expected = serial(leaves);
    for (std::size_t target = 0; target < count; ++target) {
      auto changed = leaves;
      tree_sum(views_of(changed), view_of(changed[target]));
      CHECK(differing(changed[target], expected) == 0);
    }
  }
}

TEST_CASE("scalars sum in the same order") {
  const auto leaves = random_leaves(13, 1);
  Values floats;
  std::vector<double> doubles;
  for (const Values& leaf : leaves) {
    floats.push_back(leaf[0]);
    doubles.push_back(leaf[0]);
  }
  CHECK(tree_sum(floats) == serial(leaves)[0]);
  const auto* d = doubles.data();
  const double eight = ((d[0] + d[1]) + (d[2] + d[3])) + ((d[4] + d[5]) + (d[6] + d[7]));
  CHECK(tree_sum(doubles) == eight + (((d[8] + d[9]) + (d[10] + d[11])) + d[12]));
}

TEST_CASE("leaves that arrive one by one give the tree sum of every count") {
  const std::size_t n = 3001;
  const auto leaves = random_leaves(33, n);
  for (std::size_t count = 1; count <= leaves.size(); ++count) {
    TreeAccumulator accumulator(n, static_cast<std::int64_t>(count), on_heap);
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t leaf = 0; leaf < count; ++leaf) add(accumulator, leaves[leaf], static_cast<std::int64_t>(leaf));
      REQUIRE(accumulator.nodes().size() == 1);
      const std::vector<Values> added(leaves.begin(), leaves.begin() + static_cast<std::ptrdiff_t>(count));
      CHECK(differing(copy_of(accumulator), serial(added)) == 0);
      accumulator.reset();
      CHECK(accumulator.nodes().empty());
    }
  }
}

TEST_CASE("at most log2(M) partial sums live") {
  int live = 0, most = 0;
  const auto allocate = [&](std::int64_t bytes) {
    most = std::max(most, ++live);
    const Buffer buffer = on_heap(bytes);
    return buffer.owned_by({buffer.data(), [&live, buffer](std::byte*) { --live; }});
  };
  const auto leaves = random_leaves(16, 10);
  {
    TreeAccumulator accumulator(10, 16, allocate);
    for (int pass = 0; pass < 3; ++pass) {
      for (std::int64_t leaf = 0; leaf < 16; ++leaf) add(accumulator, leaves[static_cast<std::size_t>(leaf)], leaf);
      accumulator.reset();
    }
  }
  CHECK(most == 4);
  CHECK(live == 0);
}

TEST_CASE("negative zeros and non-finite values survive") {
  std::vector<Values> leaves(4, Values{-0.0f, 1.0f, 1.0f});
  leaves[2][1] = std::numeric_limits<float>::quiet_NaN();
  leaves[3][2] = std::numeric_limits<float>::infinity();
  TreeAccumulator accumulator(3, 4, on_heap);
  for (std::int64_t leaf = 0; leaf < 4; ++leaf) add(accumulator, leaves[static_cast<std::size_t>(leaf)], leaf);
  for (const Values& sum : {tree(leaves), copy_of(accumulator)}) {
    CHECK(std::signbit(sum[0]));
    CHECK(std::isnan(sum[1]));
    CHECK(std::isinf(sum[2]));
  }
}

/// A term: a node and its values.
struct Term {
  tree::Leaves node;
  Values values;
};

std::vector<Term> terms_of(const TreeAccumulator& accumulator) {
  std::vector<Term> terms;
  for (std::size_t i = 0; i < accumulator.nodes().size(); ++i) {
    const View sum = accumulator.sums()[i];
    terms.push_back({accumulator.nodes()[i], Values(sum.as<float>(), sum.as<float>() + sum.count)});
  }
  return terms;
}

/// The sums that the ranks' terms make up.
std::vector<Term> sums_of(const std::vector<std::vector<Term>>& by_rank, std::int64_t leaves) {
  std::vector<std::vector<tree::Leaves>> nodes;
  std::vector<View> views;
  for (const auto& terms : by_rank) {
    nodes.emplace_back();
    for (const Term& term : terms) nodes.back().push_back(term.node), views.push_back(view_of(term.values));
  }
  const auto addends = tree::Addends::of(nodes, leaves);
  std::vector<Term> sums;
  for (const tree::Leaves& node : addends.sums)
    sums.push_back({node, Values(static_cast<std::size_t>(views.front().count))});
  std::vector<View> out;
  for (const Term& sum : sums) out.push_back(view_of(sum.values));
  tree_sums(addends, views, out);
  return sums;
}

// The two ways of spreading M leaves over ranks and steps: each gives the bits of the serial tree.
TEST_CASE("leaves give one sum on any number of ranks, in both mappings") {
  const std::size_t n = 519;
  for (const std::int64_t count : {1, 3, 5, 7, 8, 11, 12, 15, 16, 20}) {
    const auto leaves = random_leaves(static_cast<std::size_t>(count), n);
    const Values expected = serial(leaves);
    const auto leaf = [&](std::int64_t i) -> const Values& { return leaves[static_cast<std::size_t>(i)]; };
    for (std::int64_t ranks = 1; ranks <= 13; ++ranks) {
      CAPTURE(count);
      CAPTURE(ranks);
      // Stages 0 and 1: each rank adds its slice of the leaves in time, then the ranks add once.
      std::vector<std::vector<Term>> local;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        TreeAccumulator accumulator(n, count, on_heap);
        for (std::int64_t i = count * rank / ranks; i < count * (rank + 1) / ranks; ++i) add(accumulator, leaf(i), i);
        local.push_back(terms_of(accumulator));
      }
      const auto sums = sums_of(local, count);
      REQUIRE(sums.size() == 1);
      CHECK(differing(sums[0].values, expected) == 0);
      // Stages 2 and 3: the ranks add leaves k*ranks + r at step k, then the steps add.
      TreeAccumulator accumulator(n, count, on_heap);
      for (std::int64_t first = 0; first < count; first += ranks) {
        std::vector<std::vector<Term>> now(static_cast<std::size_t>(ranks));
        for (std::int64_t i = first; i < std::min(count, first + ranks); ++i)
          now[static_cast<std::size_t>(i - first)].push_back({{i, i + 1}, leaf(i)});
        for (const Term& sum : sums_of(now, count)) accumulator.add(sum.node, view_of(sum.values));
      }
      REQUIRE(accumulator.nodes().size() == 1);
      CHECK(differing(copy_of(accumulator), expected) == 0);
    }
  }
}

TEST_CASE("a sum may be written over the first term of any rank") {
  const std::int64_t count = 11;
  const auto leaves = random_leaves(static_cast<std::size_t>(count), 700);
  const Values expected = serial(leaves);
  for (const std::int64_t ranks : {2, 3, 4, 5}) {
    for (std::int64_t target = 0; target < ranks; ++target) {
      std::vector<std::vector<tree::Leaves>> nodes;
      std::vector<Values> values;
      std::size_t first_of_target = 0;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        if (rank == target) first_of_target = values.size();
        nodes.push_back(tree::nodes({count * rank / ranks, count * (rank + 1) / ranks}, count));
        for (const tree::Leaves& node : nodes.back())
          values.push_back(tree({leaves.begin() + node.begin, leaves.begin() + node.end}));
      }
      const View out = view_of(values[first_of_target]);
      tree_sums(tree::Addends::of(nodes, count), views_of(values), {&out, 1});
      CHECK(differing(values[first_of_target], expected) == 0);
    }
  }
}

TEST_CASE("what is planted in a sum of several ranks is found") {
  const std::size_t n = 200;
  const auto leaves = random_leaves(6, n);
  const auto term = [&](std::int64_t begin, std::int64_t end) {
    return Term{{begin, end}, tree({leaves.begin() + begin, leaves.begin() + end})};
  };
  const Values expected = serial(leaves);
  CHECK(differing(sums_of({{term(0, 2), term(2, 3)}, {term(3, 4), term(4, 6)}}, 6)[0].values, expected) == 0);
  // A leaf lost, and one counted twice, are named.
  CHECK_THROWS_WITH(sums_of({{term(0, 2)}, {term(3, 4), term(4, 6)}}, 6), "micro-batch 2 of a step is in no sum");
  CHECK_THROWS_WITH(sums_of({{term(0, 2), term(2, 3)}, {term(2, 4), term(4, 6)}}, 6),
                    "micro-batch 2 of a step is added twice");
  TreeAccumulator accumulator(n, 6, on_heap);
  accumulator.add({0, 2}, view_of(leaves[0]));
  CHECK_THROWS_WITH(accumulator.add({4, 6}, view_of(leaves[0])), "micro-batch 2 to 3 of a step is in no sum");
  // Two subtrees that change places, and a range that is added as a tree of its own, have other bits.
  const auto swapped =
      sums_of({{{{0, 2}, term(4, 6).values}, term(2, 3)}, {term(3, 4), {{4, 6}, term(0, 2).values}}}, 6);
  CHECK(differing(swapped[0].values, expected) > n / 10);
  CHECK(differing(tree({tree({leaves.begin(), leaves.begin() + 3}), tree({leaves.begin() + 3, leaves.end()})}),
                  expected) > n / 10);
}

// What the promise excludes. If these gave equal bits, the tests above would show nothing.
TEST_CASE("a sequential sum and a far-partner-first sum differ in many elements") {
  const std::size_t n = 4096;
  const auto leaves = random_leaves(8, n);
  const Values expected = serial(leaves);
  Values sequential = leaves[0];
  for (std::size_t leaf = 1; leaf < 8; ++leaf) {
    for (std::size_t i = 0; i < n; ++i) sequential[i] += leaves[leaf][i];
  }
  CHECK(differing(sequential, expected) > n / 4);
  const auto& l = leaves;
  Values far(n);
  for (std::size_t i = 0; i < n; ++i) {
    far[i] = ((l[0][i] + l[4][i]) + (l[2][i] + l[6][i])) + ((l[1][i] + l[5][i]) + (l[3][i] + l[7][i]));
  }
  CHECK(differing(far, expected) > n / 4);
}

}  // namespace
}  // namespace zs::device
