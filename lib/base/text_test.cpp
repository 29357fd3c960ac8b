// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <doctest/doctest.h>

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

}  // namespace zs
