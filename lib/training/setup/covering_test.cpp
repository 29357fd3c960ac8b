// SPDX-License-Identifier: Apache-2.0
#include "setup/covering_test.hpp"

#include <doctest/doctest.h>

namespace zs::setup {
namespace {

TEST_CASE("covering: of any two factors each pair of values is in a row, and no row is superfluous") {
  const std::vector<int> sizes = {5, 4, 3, 2, 2};
  const auto rows = covering(sizes);
  CHECK(rows.size() == 20);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (std::size_t j = i + 1; j < sizes.size(); ++j) {
      std::set<std::pair<int, int>> pairs;
      for (const auto& row : rows) pairs.insert({row[i], row[j]});
      CHECK(pairs.size() == static_cast<std::size_t>(sizes[i] * sizes[j]));
    }
  }
}

}  // namespace
}  // namespace zs::setup
