// SPDX-License-Identifier: Apache-2.0
#include "verify/sums.hpp"

#include <array>

namespace zs::verify {
namespace {

/// The tree over neighbouring leaves, which splits behind the largest power of two below their number.
Tensors tree_sum(std::span<const Tensors> leaves) {
  if (leaves.size() == 1) return leaves[0];
  const auto left = static_cast<std::size_t>(left_half(std::ssize(leaves)));
  return sum(tree_sum(leaves.first(left)), tree_sum(leaves.subspan(left)));
}

double sum_of_squares(const Tensors& gradients) {
  double total = 0;
  for (const auto& unit : gradients) {
    std::vector<float> flat;
    for (const at::Tensor& tensor : unit) {
      if (tensor.defined())
        flat.insert(flat.end(), tensor.data_ptr<float>(), tensor.data_ptr<float>() + tensor.numel());
    }
    for (std::size_t tile = 0; tile < 256; ++tile) {
      std::array<double, 256> lanes{};
      const std::size_t begin = flat.size() * tile / 256, end = flat.size() * (tile + 1) / 256;
      for (std::size_t i = begin; i < end; ++i) lanes[(i - begin) % 256] += static_cast<double>(flat[i]) * flat[i];
      for (std::size_t half = 128; half > 0; half /= 2) {
        for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
      }
      total += lanes[0];
    }
  }
  return total;
}

}  // namespace

std::int64_t left_half(std::int64_t leaves) {
  std::int64_t left = 1;
  while (2 * left < leaves) left *= 2;
  return left;
}

Tensors sum(const Tensors& a, const Tensors& b) {
  Tensors total(a.size());
  for (std::size_t unit = 0; unit < a.size(); ++unit) {
    for (std::size_t i = 0; i < a[unit].size(); ++i)
      total[unit].push_back(a[unit][i].defined() ? a[unit][i] + b[unit][i] : at::Tensor());
  }
  return total;
}

Tensors joined_sum(std::span<const Tensors> leaves, std::int64_t begin, std::int64_t total) {
  const std::int64_t end = begin + std::ssize(leaves);
  // The largest subtree that begins with the first leaf and ends within these.
  std::int64_t from = 0, to = total;
  while (from < begin || to > end) {
    const std::int64_t middle = from + left_half(to - from);
    if (begin < middle)
      to = middle;
    else
      from = middle;
  }
  const auto first = static_cast<std::size_t>(to - begin);
  const Tensors head = tree_sum(leaves.first(first));
  return first == leaves.size() ? head : sum(head, joined_sum(leaves.subspan(first), to, total));
}

double sum_of_squares(const Tensors& gradients, const unit::Units& units) {
  Tensors whole, experts;
  for (std::size_t unit = 0; unit < units.size(); ++unit)
    (units[unit]->experts() > 0 ? experts : whole).push_back(gradients[unit]);
  return sum_of_squares(whole) + sum_of_squares(experts);
}

}  // namespace zs::verify
