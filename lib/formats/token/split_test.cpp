// SPDX-License-Identifier: Apache-2.0
#include "token/split.hpp"

#include <doctest/doctest.h>

#include <random>

#include "base/error.hpp"

namespace zs::token {
namespace {

using Words = std::vector<std::string>;

Words words(const Steps& steps, std::string_view text) {
  Words found;
  Splitter(steps).split(text, [&](std::string_view word) { found.emplace_back(word); });
  return found;
}

Steps one(std::string_view expression, Behaviour behaviour = Behaviour::isolated, bool invert = false) {
  return {{{Expression(expression, "x")}, behaviour, invert}};
}

std::string refused(std::string_view expression) {
  try {
    Expression(expression, "x");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("split: GPT-2's expression") {
  CHECK(words(one(kGpt2Expression), "I'll  go, it's 2024!!\n\n x") ==
        Words{"I", "'ll", " ", " go", ",", " it", "'s", " 2024", "!!", "\n\n", " x"});
}

// What each behaviour makes of it is as the package tokenizers documents it.
TEST_CASE("split: the behaviours") {
  const std::string_view text = "the-final--countdown";
  CHECK(words(one("-", Behaviour::removed), text) == Words{"the", "final", "countdown"});
  CHECK(words(one("-", Behaviour::isolated), text) == Words{"the", "-", "final", "-", "-", "countdown"});
  CHECK(words(one("-", Behaviour::merged_with_previous), text) == Words{"the-", "final-", "-", "countdown"});
  CHECK(words(one("-", Behaviour::merged_with_next), text) == Words{"the", "-final", "-", "-countdown"});
  CHECK(words(one("-", Behaviour::contiguous), text) == Words{"the", "-", "final", "--", "countdown"});
  CHECK(words(one("[a-z]+", Behaviour::removed, true), text) == Words{"the", "final", "countdown"});
}

TEST_CASE("split: steps follow one another, and a space goes in front of each piece that has none") {
  Steps steps = one("-", Behaviour::removed);
  steps.push_back({});
  steps.push_back(one("[a-z]").front());
  CHECK(words(steps, "ab- c") == Words{" ", "a", "b", " ", "c"});
}

TEST_CASE("split: parts that end where the next begins are the whole") {
  const Steps steps = one(kGpt2Expression);
  std::mt19937 random(3);
  std::string text;
  for (int i = 0; i < 4000; ++i) text += "ab 1'.\n"[random() % 7];
  const Words whole = words(steps, text);
  Splitter splitter(steps);
  Words joined;
  for (std::size_t at = 0; at < text.size();)
    at = splitter.split_part(text, at, at + 1 + random() % 50,
                             [&](std::string_view word) { joined.emplace_back(word); });
  CHECK(joined == whole);
}

TEST_CASE("expression: the classes of Unicode 16, and white space without U+180E") {
  CHECK(words(one(R"(\p{L}+)"), "a\U00031350!") == Words{"a\U00031350", "!"});  // a letter since Unicode 15
  CHECK(words(one(R"([^\s\p{L}]+)"), "!\U00031350") == Words{"!", "\U00031350"});
  CHECK(words(one(R"(\P{L}+)"), "!\U00031350") == Words{"!", "\U00031350"});
  CHECK(words(one(R"(\p{N}+)"), "1\U00010D40a") == Words{"1\U00010D40", "a"});  // a digit since Unicode 16
  CHECK(words(one(R"(\s+)"), "a \u180E") == Words{"a", " ", "\u180E"});
  CHECK(words(one(R"(\S+)"), "a\u180E ") == Words{"a\u180E", " "});
  CHECK(words(one(R"([\S]+)"), "a\u180E ") == Words{"a\u180E", " "});
  CHECK(words(one(R"((?i:'s))"), "a'\u017F") == Words{"a", "'\u017F"});  // folds to s
  CHECK(words(one(R"(\v)"), "a\x0B\n") == Words{"a", "\x0B", "\n"});
  CHECK(words(one(R"(\u00e9|\x62)"), "abé") == Words{"a", "b", "é"});
  CHECK(words({{{Expression::literal("a.[é", "x")}}}, "a.[éaxx") == Words{"a.[é", "axx"});
}

TEST_CASE("expression: what Oniguruma takes differently is refused by name") {
  CHECK(refused(R"(\w)") == R"(x: '\w': '\w' is not known to zs)");
  CHECK(refused(R"(\b)") == R"(x: '\b': '\b' is not known to zs)");
  CHECK(refused(R"(\h)") == R"(x: '\h': '\h' is not known to zs)");
  CHECK(refused("^a") == "x: '^a': '^' is not known to zs");
  CHECK(refused("a$") == "x: 'a$': '$' is not known to zs");
  CHECK(refused("[a[b]]") == "x: '[a[b]]': a class within a class is not known to zs");
  CHECK(refused("[a&&b]") == "x: '[a&&b]': '&&' in a class is not known to zs");
  CHECK(refused("[a") == "x: '[a': a '[' without its ']' is not known to zs");
  CHECK(refused("a{2}+") == "x: 'a{2}+': '+' after '}' is not known to zs");
  CHECK(refused("a{,2}") == "x: 'a{,2}': a '{' that begins no {n}, {n,} or {n,m} is not known to zs");
  CHECK(refused("(?m:a)") == "x: '(?m:a)': '(?m:' is not known to zs");
  CHECK(refused(R"(\p{Han})") == R"(x: '\p{Han}': the property 'Han' is not known to zs)");
  CHECK(refused(R"([\P{L}])") == R"(x: '[\P{L}]': a negated set in a class is not known to zs)");
  CHECK(refused(R"(a\)") == R"(x: 'a\': a '\' at the end is not known to zs)");
  CHECK(refused("a|b*") == "x: 'a|b*' may match nothing at all, which splits nothing");
  CHECK(refused("(a") == "x: '(a' is not a regular expression: missing closing parenthesis");
}

}  // namespace zs::token
