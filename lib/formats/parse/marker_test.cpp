// SPDX-License-Identifier: Apache-2.0
#include "parse/marker.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

namespace zs::parse {
namespace {

/// The first occurrence of any marker, by trying every place.
std::size_t searched(const std::string& text, const std::vector<std::string_view>& markers) {
  std::size_t first = std::string::npos;
  for (const std::string_view marker : markers) first = std::min(first, text.find(marker));
  return first;
}

TEST_CASE("Markers finds the first place, whatever the length and the alignment") {
  const std::vector<std::string_view> few = {"abca", "abcb", "abda", "bcaad", "dddd"};
  std::vector<std::string> made;
  for (char a = 'a'; a < 'e'; ++a) {
    for (char b = 'a'; b < 'e'; ++b) made.push_back(std::string("c") + a + b + "da");
  }
  std::vector<std::string_view> many(made.begin(), made.end());
  std::mt19937 random(1);
  for (const auto& markers : {few, many}) {
    const Markers wide(markers);
    for (int round = 0; round < 4000; ++round) {
      std::string text(random() % 200, 'x');
      for (char& c : text) c = "abcdx"[random() % 5];
      const char* const found = wide.find(text.data(), text.data() + text.size());
      const std::size_t expected = searched(text, markers);
      REQUIRE((found ? static_cast<std::size_t>(found - text.data()) : std::string::npos) == expected);
    }
  }
}

TEST_CASE("count_newlines counts each") {
  std::mt19937 random(2);
  for (std::size_t length = 0; length < 200; ++length) {
    std::string text(length, 'x');
    for (char& c : text) c = "x\n"[random() % 2];
    CHECK(count_newlines(text.data(), text.data() + length) == std::count(text.begin(), text.end(), '\n'));
  }
}

}  // namespace
}  // namespace zs::parse
