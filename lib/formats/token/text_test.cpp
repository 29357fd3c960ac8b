// SPDX-License-Identifier: Apache-2.0
// Text before it is tokens: UTF-8 and added tokens.
#include <doctest/doctest.h>

#include "token/added.hpp"
#include "token/unicode.hpp"

namespace zs::token {
namespace {

std::string fixed(std::string_view text) {
  std::string room;
  return std::string(as_utf8(text, room));
}

std::string found(const std::vector<AddedToken>& tokens, std::string_view text) {
  std::vector<Stretch> stretches;
  AddedTokens(tokens).find(text, stretches);
  std::string marked;
  for (const Stretch& stretch : stretches)
    marked += (stretch.token ? std::to_string(*stretch.token) : "") + "[" + std::string(stretch.text) + "]";
  return marked;
}

}  // namespace

// As b"...".decode(errors="replace") of Python 3 has it.
TEST_CASE("unicode: what is broken is replaced by its longest beginnings") {
  CHECK(fixed("") == "");
  CHECK(fixed("a\u20AC\U0001F600") == "a\u20AC\U0001F600");
  CHECK(fixed("\xE2\x82") == "\uFFFD");
  CHECK(fixed("a\xE2\x82z") == "a\uFFFDz");
  CHECK(fixed("\xF0\x9F\x98z\xF0\x9Fz\xF0z") == "\uFFFDz\uFFFDz\uFFFDz");
  CHECK(fixed("\xED\xA0\x80") == "\uFFFD\uFFFD\uFFFD");  // a surrogate
  CHECK(fixed("\xC0\xAF") == "\uFFFD\uFFFD");            // overlong
  CHECK(fixed("\xE0\x80\xF0\x8F\x80") == "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
  CHECK(fixed("\xF4\x90\x80\x80") == "\uFFFD\uFFFD\uFFFD\uFFFD");  // past the last
  CHECK(fixed("\x80\xFF ok") == "\uFFFD\uFFFD ok");
}

TEST_CASE("added tokens: the longest of those that begin first") {
  const std::vector<AddedToken> tokens = {{1, "ab"}, {2, "abc"}, {3, "bcd"}, {4, "b"}};
  CHECK(found(tokens, "xabcd ab b") == "[x]2[abc][d ]1[ab][ ]4[b]");
  CHECK(found(tokens, "abab") == "1[ab]1[ab]");
  CHECK(found({}, "ab") == "[ab]");
  CHECK(found(tokens, "") == "");
}

TEST_CASE("added tokens: single words, and white space on either side") {
  CHECK(found({{1, "don", true}}, "don don't xdon don_ don") == "1[don][ ]1[don]['t xdon don_ ]1[don]");
  CHECK(found({{1, "don", true}}, "\u00E9don don\u0301 \U00031350don") == "[\u00E9don don\u0301 \U00031350don]");
  CHECK(found({{1, "x", false, true, false}}, "a \u3000x b") == "[a]1[ \u3000x][ b]");
  CHECK(found({{1, "x", false, false, true}}, "a x \u2028b") == "[a ]1[x \u2028][b]");
  CHECK(found({{1, "x", false, true, true}}, "x x x") == "1[x ]1[x ]1[x]");
  CHECK(found({{1, "x", false, false, true}, {2, "\t"}}, "x\t b") == "1[x]2[\t][ b]");
}

}  // namespace zs::token
