// SPDX-License-Identifier: Apache-2.0
#include "plan/matrix.hpp"

#include <algorithm>
#include <numeric>

namespace zs::plan {

std::int64_t Matrix::cost() const {
  const std::int64_t shorter = std::min(rows, columns), longer = std::max(rows, columns);
  return shorter * shorter * (2 * longer + shorter);
}

namespace {

std::int64_t cost(std::span<const Matrix> matrices) {
  return std::accumulate(matrices.begin(), matrices.end(), std::int64_t{0},
                         [](std::int64_t sum, const Matrix& one) { return sum + one.cost(); });
}

}  // namespace

std::vector<std::vector<Matrix>> owned(std::span<const Matrix> matrices, int ranks) {
  std::vector<Matrix> by_cost(matrices.begin(), matrices.end());
  std::ranges::stable_sort(by_cost, [](const Matrix& a, const Matrix& b) { return a.cost() > b.cost(); });
  std::vector<std::vector<Matrix>> owners(static_cast<std::size_t>(ranks));
  std::vector<std::int64_t> costs(owners.size());
  for (const Matrix& matrix : by_cost) {
    const auto least = std::ranges::min_element(costs);
    *least += matrix.cost();
    owners[static_cast<std::size_t>(least - costs.begin())].push_back(matrix);
  }
  return owners;
}

double busiest(std::span<const Matrix> matrices, int ranks) {
  std::int64_t most = 0;
  for (const std::vector<Matrix>& held : owned(matrices, ranks)) most = std::max(most, cost(held));
  return matrices.empty() ? 0 : static_cast<double>(most) / static_cast<double>(cost(matrices));
}

std::int64_t sent_numbers(std::span<const Matrix> matrices, std::int64_t trained, bool divided, int ranks, int node) {
  const std::vector<std::vector<Matrix>> owners = owned(matrices, ranks);
  std::int64_t sum = 0;
  for (int owner = 0; owner < ranks; ++owner) {
    for (const Matrix& matrix : owners[static_cast<std::size_t>(owner)]) {
      const int first = owner / node * node, behind = std::min(ranks, first + node);
      if (!divided) {
        sum += matrix.numel() * (ranks - (behind - first));
        continue;
      }
      // Slices on the owner's node do not leave the node; everything else goes there and back.
      const std::int64_t begin = std::max(matrix.begin, trained * first / ranks),
                         end = std::min(matrix.end(), trained * behind / ranks);
      sum += 2 * (matrix.numel() - std::max<std::int64_t>(0, end - begin));
    }
  }
  return sum;
}

}  // namespace zs::plan
