// SPDX-License-Identifier: Apache-2.0
#include "data/packing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace zs::data {

TEST_CASE("packing: each piece lies in one row, in order, none is too full, and few are used") {
  const Rows known = pack({{0, 3}, {4, 5}, {10, 8}, {19, 2}, {22, 6}}, 8);
  CHECK(known.first == std::vector<std::int64_t>{0, 2, 3, 5});  // 3 + 5, 8, 2 + 6
  std::vector<std::int64_t> begins;
  for (const Piece& piece : known.pieces) begins.push_back(piece.begin);
  CHECK(begins == std::vector<std::int64_t>{0, 4, 10, 19, 22});

  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const auto length = static_cast<std::int64_t>(1 + random() % 40);
    std::vector<Piece> pieces;
    std::int64_t at = 0, total = 0;
    for (std::size_t i = 0, count = 1 + random() % 300; i < count; ++i) {
      const auto targets = static_cast<std::int64_t>(1 + random() % static_cast<unsigned>(length));
      pieces.push_back({at, targets});
      at += targets + 1;
      total += targets;
    }
    const Rows rows = pack(pieces, length);
    const auto count = static_cast<std::int64_t>(rows.first.size()) - 1;
    REQUIRE(rows.first.back() == static_cast<std::int64_t>(pieces.size()));
    std::vector<std::int64_t> seen;
    for (std::int64_t row = 0; row < count; ++row) {
      std::int64_t filled = 0, last = -1;
      for (std::int64_t i = rows.first[static_cast<std::size_t>(row)];
           i < rows.first[static_cast<std::size_t>(row) + 1]; ++i) {
        const Piece& piece = rows.pieces[static_cast<std::size_t>(i)];
        CHECK(piece.begin > last);
        last = piece.begin;
        filled += piece.targets;
        seen.push_back(piece.begin);
      }
      CHECK(filled > 0);
      CHECK(filled <= length);
    }
    std::ranges::sort(seen);
    CHECK(std::ranges::equal(seen, pieces, {}, {}, &Piece::begin));
    CHECK(static_cast<double>(count) <=
          11.0 / 9 * std::max(1.0, 2 * static_cast<double>(total) / static_cast<double>(length)) + 1);
  }
}

}  // namespace zs::data
