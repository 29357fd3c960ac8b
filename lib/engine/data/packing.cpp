// SPDX-License-Identifier: Apache-2.0
#include "data/packing.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace zs::data {

const char* name(Packing packing) {
  return packing == Packing::none ? "none" : packing == Packing::masked ? "masked" : "whole";
}

Rows pack(std::vector<Piece> pieces, std::int64_t length) {
  std::ranges::stable_sort(pieces, [](const Piece& a, const Piece& b) { return a.targets > b.targets; });
  std::set<std::pair<std::int64_t, std::size_t>> room;  // of each row
  std::vector<std::vector<Piece>> rows;
  for (const Piece& piece : pieces) {
    const auto best = room.lower_bound({piece.targets, 0});
    const auto [left, row] = best == room.end() ? std::pair(length, rows.size()) : *best;
    if (best == room.end())
      rows.emplace_back();
    else
      room.erase(best);
    rows[row].push_back(piece);
    if (left > piece.targets) room.insert({left - piece.targets, row});
  }
  const auto earlier = [](const Piece& a, const Piece& b) { return a.begin < b.begin; };
  for (auto& row : rows) std::ranges::sort(row, earlier);
  std::ranges::sort(rows, [&](const auto& a, const auto& b) { return earlier(a.front(), b.front()); });
  Rows packed;
  for (const auto& row : rows) {
    packed.first.push_back(static_cast<std::int64_t>(packed.pieces.size()));
    packed.pieces.insert(packed.pieces.end(), row.begin(), row.end());
  }
  packed.first.push_back(static_cast<std::int64_t>(packed.pieces.size()));
  return packed;
}

}  // namespace zs::data
