// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "base/number.hpp"
#include "base/words.hpp"

namespace zs {

TEST_CASE("printable leaves text as it is") {
  for (const char* const text : {"", "zero_stage_1", "größe ± 5 %", "损失", "🙂 ok", "a\\b"})
    CHECK(printable(text) == text);
}

TEST_CASE("printable spells what acts on a terminal") {
  CHECK(printable("\x1b[31mred\x1b[0m") == "\\x1B[31mred\\x1B[0m");
  CHECK(printable("one\ntwo\tthree\r") == "one\\ntwo\\tthree\\r");
  CHECK(printable("\x7f") == "\\x7F");
  CHECK(printable("\xC2\x9B"
                  "2J") == "\\u009B2J");  // C1, as UTF-8
  CHECK(printable("\x9B"
                  "2J") == "\\x9B2J");  // C1, as Latin-1
  CHECK(printable("a\xE2\x80\xAE"
                  "b") == "a\\u202Eb");           // right to left
  CHECK(printable("\xE2\x80\xA8") == "\\u2028");  // line separator
  CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
}

TEST_CASE("what is not UTF-8 is spelt byte by byte") {
  CHECK(printable("\xC0\x9B") == "\\xC0\\x9B");  // overlong
  CHECK(printable("\xE0\x80\x9B") == "\\xE0\\x80\\x9B");
  CHECK(printable("\xED\xA0\x80") == "\\xED\\xA0\\x80");           // surrogate
  CHECK(printable("\xF4\x90\x80\x80") == "\\xF4\\x90\\x80\\x80");  // above U+10FFFF
  CHECK(printable("\xE2\x82") == "\\xE2\\x82");                    // cut
  CHECK(printable("\xFFok") == "\\xFFok");
}

TEST_CASE("number: what no double can hold is inf above, and nothing below") {
  CHECK(parse_real("1e400") == HUGE_VAL);
  CHECK(parse_real("-1e99999999999") == -HUGE_VAL);
  for (const char* const small : {"1e-99999999999", "-1e-400", "0.5e-400", "1e-324"}) CHECK(!parse_real(small));
  CHECK(!parse_real("0." + std::string(400, '0') + "1"));
  CHECK(parse_real("5e-324") == 5e-324);
  for (const char* const zero : {"0", "-0", "0.0e-99999999999", "0e7"}) CHECK(parse_real(zero) == 0.0);
}

TEST_CASE("shell: words are split as a shell does, and what was quoted reads back") {
  using Words = std::vector<std::string>;
  CHECK(shell_words("a  'b c' \"d \\\" e\" f\\ g") == Words{"a", "b c", "d \" e", "f g"});
  const Words words = {"--x", "it's", "a b", "$HOME", "\\"};
  CHECK(shell_words(shell_quoted(words)) == words);
}

TEST_CASE("characters are counted and cut whole") {
  CHECK(characters("") == 0);
  CHECK(characters("aö€") == 3);
  CHECK(first_characters("aö€b", 3) == "aö€");
  CHECK(first_characters("aö", 0).empty());
  CHECK(first_characters("aö", 9) == "aö");
}

}  // namespace zs
