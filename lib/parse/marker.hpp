// SPDX-License-Identifier: Apache-2.0
// The search for the few lines of a log that are worth a look: several short literals at once, at memory speed.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace zs::parse {

/// Finds the first place where any of the markers stands. A marker has at least 3 bytes; only the markers of one
/// group that share their first three bytes are compared at a place, so a few dozen markers cost as much as one.
class Markers {
 public:
  explicit Markers(const std::vector<std::string_view>& markers);

  /// The first occurrence of any marker in [begin, end), or nullptr.
  const char* find(const char* begin, const char* end) const;

 private:
  const char* find_wide(const char* begin, const char* end) const;
  const char* find_plain(const char* begin, const char* end) const;
  bool matches(const char* at, const char* end, unsigned groups) const;

  static constexpr int kGroups = 8;
  std::array<std::vector<std::string_view>, kGroups> groups_;
  // Bit g of low_[i][x] & high_[i][y]: some marker of group g has, as its byte i, one with low half x and high half y.
  alignas(16) std::array<std::array<std::uint8_t, 16>, 3> low_{}, high_{};
  bool wide_ = false;
};

/// The number of '\n' in [begin, end).
std::int64_t count_newlines(const char* begin, const char* end);

}  // namespace zs::parse
