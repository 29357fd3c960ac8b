// SPDX-License-Identifier: Apache-2.0
#include "plan/matrix.hpp"

#include <doctest/doctest.h>

#include <set>

namespace zs::plan {
namespace {

/// A block of Llama of this width: queries, keys, values, output, gate, up, down.
std::vector<Matrix> block(std::int64_t width) {
  std::vector<Matrix> matrices;
  std::int64_t begin = width;  // behind a norm
  for (const auto& [rows, columns] :
       {std::pair(width, width), std::pair(width / 4, width), std::pair(width / 4, width), std::pair(width, width),
        std::pair(4 * width, width), std::pair(4 * width, width), std::pair(width, 4 * width)}) {
    matrices.push_back({begin, rows, columns});
    begin = matrices.back().end();
  }
  return matrices;
}

TEST_CASE("matrices: every one has one owner, by cost and not by place, and more ranks are never busier") {
  const std::vector<Matrix> matrices = block(64);
  CHECK(matrices.back().cost() == 64 * 64 * (2 * 256 + 64));
  CHECK(matrices[1].cost() == 16 * 16 * (2 * 64 + 16));
  double before = 1;
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 64}) {
    CAPTURE(ranks);
    std::set<std::int64_t> begins;
    for (const std::vector<Matrix>& share : owned(matrices, ranks)) {
      for (const Matrix& matrix : share) CHECK(begins.insert(matrix.begin).second);
    }
    CHECK(begins.size() == matrices.size());
    const double most = busiest(matrices, ranks);
    CHECK(most <= before);
    CHECK(most >= 1.0 / ranks);
    before = most;
  }
  // On 4 ranks one each of gate, up and down, and all else on the fourth.
  CHECK(owned(matrices, 4)[3].size() == 4);
  CHECK(busiest(matrices, 4) == doctest::Approx(9.0 / (3 * 9 + 2 * 3 + 2 * 0.140625)));
  CHECK(busiest({}, 4) == 0);
}

TEST_CASE("matrices: what is sent is what each rank's part of a foreign matrix has, there and back") {
  const std::vector<Matrix> matrices = block(64);
  const std::int64_t trained = matrices.back().end() + 5;
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (const int node : {1, 2, 8}) {
      CAPTURE(ranks);
      CAPTURE(node);
      std::int64_t divided = 0, whole = 0;  // element by element
      const std::vector<std::vector<Matrix>> owners = owned(matrices, ranks);
      for (int owner = 0; owner < ranks; ++owner) {
        for (const Matrix& matrix : owners[static_cast<std::size_t>(owner)]) {
          for (int rank = 0; rank < ranks; ++rank) {
            if (rank / node == owner / node) continue;
            whole += matrix.numel();
            for (std::int64_t i = matrix.begin; i < matrix.end(); ++i)
              divided += i >= trained * rank / ranks && i < trained * (rank + 1) / ranks ? 2 : 0;
          }
        }
      }
      CHECK(sent_numbers(matrices, trained, true, ranks, node) == divided);
      CHECK(sent_numbers(matrices, trained, false, ranks, node) == whole);
    }
  }
}

}  // namespace
}  // namespace zs::plan
