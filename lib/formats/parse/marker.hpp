// SPDX-License-Identifier: Apache-2.0
// Finds the few relevant lines of a log: searches for several short literals at once, at memory speed.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace zs::parse {

/// Finds the first occurrence of any marker. A marker has at least 4 bytes.
class Markers {
 public:
  explicit Markers(const std::vector<std::string_view>& markers);

  /// The first occurrence of any marker in [begin, end), or nullptr.
  const char* find(const char* begin, const char* end) const;

 private:
  static constexpr std::size_t kHead = 4;  ///< bytes that are looked up in tables; the rest is compared
  static constexpr std::size_t kGroups = 8;
  struct Marker {
    std::uint32_t head;
    std::string_view rest;
  };

  const char* find_wide(const char* begin, const char* end) const;
  const char* find_plain(const char* begin, const char* end) const;
  bool matches(const char* at, const char* end, unsigned groups) const;

  std::array<std::vector<Marker>, kGroups> groups_;
  // Bit g of low_[i][x] & high_[i][y]: some marker of group g has byte i with low half x and high half y.
  alignas(16) std::array<std::array<std::uint8_t, 16>, kHead> low_{}, high_{};
  bool wide_ = false;
};

/// The number of '\n' in [begin, end).
std::int64_t count_newlines(const char* begin, const char* end);

}  // namespace zs::parse
