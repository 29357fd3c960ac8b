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

Values copy_of(TreeAccumulator& accumulator) {
  const View sum = accumulator.sum();
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

TEST_CASE("leaves that arrive one by one give the tree sum at every count") {
  const std::size_t n = 3001;
  const auto leaves = random_leaves(33, n);
  TreeAccumulator accumulator(n, on_heap);
  for (int pass = 0; pass < 2; ++pass) {
    for (std::size_t count = 1; count <= leaves.size(); ++count) {
      accumulator.add(view_of(leaves[count - 1]));
      CHECK(accumulator.count() == static_cast<std::int64_t>(count));
      const std::vector<Values> added(leaves.begin(), leaves.begin() + static_cast<std::ptrdiff_t>(count));
      CHECK(differing(copy_of(accumulator), serial(added)) == 0);
    }
    accumulator.reset();
    CHECK(accumulator.count() == 0);
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
    TreeAccumulator accumulator(10, allocate);
    for (int pass = 0; pass < 3; ++pass) {
      for (const Values& leaf : leaves) accumulator.add(view_of(leaf));
      accumulator.sum();
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
  TreeAccumulator accumulator(3, on_heap);
  for (const Values& leaf : leaves) accumulator.add(view_of(leaf));
  for (const Values& sum : {tree(leaves), copy_of(accumulator)}) {
    CHECK(std::signbit(sum[0]));
    CHECK(std::isnan(sum[1]));
    CHECK(std::isinf(sum[2]));
  }
}

// The two ways of spreading M = ranks x steps leaves: each gives the bits of the serial tree.
TEST_CASE("16 leaves give one sum on 1, 2, 4, 8 and 16 ranks, in both mappings") {
  const std::size_t n = 4099, count = 16;
  const auto leaves = random_leaves(count, n);
  const Values expected = serial(leaves);
  for (const std::size_t ranks : {1, 2, 4, 8, 16}) {
    const std::size_t steps = count / ranks;
    // Stages 0 and 1: rank r adds leaves r*steps ... in time, then the ranks add once.
    std::vector<Values> local;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      TreeAccumulator accumulator(n, on_heap);
      for (std::size_t step = 0; step < steps; ++step) accumulator.add(view_of(leaves[rank * steps + step]));
      local.push_back(copy_of(accumulator));
    }
    CHECK(differing(tree(local), expected) == 0);
    // Stages 2 and 3: the ranks add leaves k*ranks + r at step k, then the steps add.
    TreeAccumulator accumulator(n, on_heap);
    for (std::size_t step = 0; step < steps; ++step) {
      std::vector<Values> now;
      for (std::size_t rank = 0; rank < ranks; ++rank) now.push_back(leaves[step * ranks + rank]);
      accumulator.add(view_of(tree(now)));
    }
    CHECK(differing(copy_of(accumulator), expected) == 0);
  }
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
