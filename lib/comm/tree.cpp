// SPDX-License-Identifier: Apache-2.0
#include "comm/tree.hpp"

#include <algorithm>
#include <bit>

#include "base/vectorised.hpp"

namespace zs::comm {
namespace {

constexpr std::int64_t kBlock = 2048;  // floats; 8 KiB, so that the blocks of a chain of merges stay in the first cache
constexpr int kUnrolled = 8;           // leaves that one loop adds in registers
constexpr int kMaxDepth = 64;

constexpr std::size_t left_size(std::size_t leaves) { return std::bit_floor(leaves - 1); }

template <typename T>
T scalar_sum(std::span<const T> leaves) {
  if (leaves.size() == 1) return leaves[0];
  const std::size_t left = left_size(leaves.size());
  return scalar_sum(leaves.first(left)) + scalar_sum(leaves.subspan(left));
}

template <int kLeaves>
[[gnu::always_inline]] inline float node(const float* const* leaves, std::int64_t i) {
  if constexpr (kLeaves == 1) {
    return leaves[0][i];
  } else {
    constexpr int kLeft = static_cast<int>(left_size(kLeaves));
    return node<kLeft>(leaves, i) + node<kLeaves - kLeft>(leaves + kLeft, i);
  }
}

template <int kLeaves>
[[gnu::always_inline]] inline void add_up(const float* const* leaves, float* out, std::int64_t n) {
  const float* local[kLeaves];  // a copy, so that stores to `out` cannot change the pointers
  std::copy_n(leaves, kLeaves, local);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] = node<kLeaves>(local, i);
}

ZS_VECTORISED void add_few(const float* const* leaves, int count, float* out, std::int64_t n) {
  switch (count) {
    case 1:
      return add_up<1>(leaves, out, n);
    case 2:
      return add_up<2>(leaves, out, n);
    case 3:
      return add_up<3>(leaves, out, n);
    case 4:
      return add_up<4>(leaves, out, n);
    case 5:
      return add_up<5>(leaves, out, n);
    case 6:
      return add_up<6>(leaves, out, n);
    case 7:
      return add_up<7>(leaves, out, n);
    default:
      return add_up<kUnrolled>(leaves, out, n);
  }
}

// The tree over leaves[0, count) at one block; `out` overlaps no leaf.
void add_block(const float* const* leaves, std::size_t count, float* out, std::int64_t n) {
  if (count <= kUnrolled) return add_few(leaves, static_cast<int>(count), out, n);
  const std::size_t left = left_size(count);
  add_block(leaves, left, out, n);
  alignas(64) float right[kBlock];
  add_block(leaves + left, count - left, right, n);
  const float* halves[] = {out, right};
  add_few(halves, 2, out, n);
}

// levels[0] += levels[1] += ... += levels[last] += leaf, block by block.
void merge(float* const* levels, int count, const float* leaf, std::int64_t n) {
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, n - begin);
    const float* right = leaf + begin;
    for (int level = count - 1; level >= 0; --level) {
      float* left = levels[level] + begin;
      const float* both[] = {left, right};
      add_few(both, 2, left, size);
      right = left;
    }
  }
}

}  // namespace

void tree_sum(std::span<const float* const> leaves, float* out, std::int64_t n) {
  if (leaves.size() <= kUnrolled) return add_few(leaves.data(), static_cast<int>(leaves.size()), out, n);
  alignas(64) float sum[kBlock];
  std::vector<const float*> block(leaves.begin(), leaves.end());
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    const std::int64_t size = std::min(kBlock, n - begin);
    add_block(block.data(), block.size(), sum, size);
    std::copy_n(sum, size, out + begin);
    for (const float*& leaf : block) leaf += size;
  }
}

float tree_sum(std::span<const float> leaves) { return scalar_sum(leaves); }
double tree_sum(std::span<const double> leaves) { return scalar_sum(leaves); }

TreeAccumulator::TreeAccumulator(std::int64_t n, Allocate allocate) : n_(n), allocate_(std::move(allocate)) {
  if (!allocate_) allocate_ = [](std::int64_t size) { return std::make_shared_for_overwrite<float[]>(size); };
}

std::shared_ptr<float[]> TreeAccumulator::take() {
  if (free_.empty()) return allocate_(n_);
  std::shared_ptr<float[]> values = std::move(free_.back());
  free_.pop_back();
  return values;
}

void TreeAccumulator::add(const float* leaf) {
  // The partial sums are the one bits of count_; adding one merges as many of them as it has trailing ones.
  const int merges = std::countr_one(static_cast<std::uint64_t>(count_));
  ++count_;
  if (merges == 0) {
    partials_.push_back(take());
    std::copy_n(leaf, n_, partials_.back().get());
    return;
  }
  float* levels[kMaxDepth];
  const std::size_t first = partials_.size() - static_cast<std::size_t>(merges);
  for (int i = 0; i < merges; ++i) levels[i] = partials_[first + static_cast<std::size_t>(i)].get();
  merge(levels, merges, leaf, n_);
  while (partials_.size() > first + 1) {
    free_.push_back(std::move(partials_.back()));
    partials_.pop_back();
  }
}

float* TreeAccumulator::sum() {
  if (partials_.size() == 1) return partials_[0].get();
  // The lowest levels first: a tree over m leaves splits at the largest power of two below m.
  if (!sum_) sum_ = take();
  const float* right = partials_.back().get();
  for (std::size_t i = partials_.size() - 1; i-- > 0; right = sum_.get()) {
    const float* both[] = {partials_[i].get(), right};
    add_few(both, 2, sum_.get(), n_);
  }
  return sum_.get();
}

void TreeAccumulator::reset() {
  for (auto& values : partials_) free_.push_back(std::move(values));
  partials_.clear();
  count_ = 0;
}

}  // namespace zs::comm
