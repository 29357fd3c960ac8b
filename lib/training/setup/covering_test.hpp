// SPDX-License-Identifier: Apache-2.0
// Few trainings in which any two settings meet: what a fault needs is mostly one setting, or two together. All of them
// with all others are trained by tests/matrix.
#pragma once
#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace zs::setup {

/// Rows of one number for each factor, below its size, in which each pair of values of each two factors occurs.
inline std::vector<std::vector<int>> covering(const std::vector<int>& sizes) {
  using Pair = std::tuple<int, int, int, int>;  // factor, its value, a later factor, its value
  const int factors = static_cast<int>(sizes.size());
  const auto size = [&](int factor) { return sizes[static_cast<std::size_t>(factor)]; };
  std::set<Pair> missing;
  for (int i = 0; i < factors; ++i)
    for (int j = i + 1; j < factors; ++j)
      for (int a = 0; a < size(i); ++a)
        for (int b = 0; b < size(j); ++b) missing.insert({i, a, j, b});
  std::vector<std::vector<int>> rows;
  while (!missing.empty()) {
    const auto [first, a, second, b] = *missing.begin();
    std::vector<int> row(sizes.size(), -1);
    const auto value = [&](int factor) -> int& { return row[static_cast<std::size_t>(factor)]; };
    value(first) = a, value(second) = b;
    const auto is_missing = [&](int i, int j) {
      return missing.contains(i < j ? Pair{i, value(i), j, value(j)} : Pair{j, value(j), i, value(i)});
    };
    for (int i = 0; i < factors; ++i) {
      if (value(i) >= 0) continue;
      int best = 0, most = -1;
      for (int turn = 0; turn < size(i); ++turn) {
        value(i) = (turn + static_cast<int>(rows.size())) % size(i);  // where several do as well, another in each row
        int found = 0;
        for (int j = 0; j < factors; ++j) found += j != i && value(j) >= 0 && is_missing(i, j) ? 1 : 0;
        if (found > most) most = found, best = value(i);
      }
      value(i) = best;
    }
    for (int i = 0; i < factors; ++i)
      for (int j = i + 1; j < factors; ++j) missing.erase({i, value(i), j, value(j)});
    rows.push_back(row);
  }
  return rows;
}

/// The rows of a covering in turn: one is taken again when all that fit have been.
class Turns {
 public:
  explicit Turns(const std::vector<int>& sizes) : rows_(covering(sizes)) {}
  /// The next row that `fits` says true of.
  template <class Fits>
  std::vector<int> next(const Fits& fits) {
    const auto found = std::find_if(rows_.begin(), rows_.end(), fits);
    if (found == rows_.end()) throw std::logic_error("no row fits");
    std::vector<int> row = *found;
    taken_.insert(row);
    std::rotate(found, found + 1, rows_.end());
    return row;
  }
  /// Whether each row was taken.
  bool all() const { return taken_.size() == rows_.size(); }

 private:
  std::vector<std::vector<int>> rows_;
  std::set<std::vector<int>> taken_;
};

/// "2 0 1": a row, for what a failed check says.
inline std::string shown(const std::vector<int>& row) {
  std::string text;
  for (const int value : row) text += (text.empty() ? "" : " ") + std::to_string(value);
  return text;
}

}  // namespace zs::setup
