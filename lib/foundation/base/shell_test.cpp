// SPDX-License-Identifier: Apache-2.0
#include "base/words.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"

using Words = std::vector<std::string>;

TEST_CASE("shell: words come back as they were, whatever is in them") {
  const Words words = {"zs-train", "", "a b", "it's", "x\ny\t", "\\", "\"$HOME\"", "--set", "run.name=(withheld)", "'"};
  CHECK(zs::shell_words(zs::shell_quoted(words)) == words);
}

TEST_CASE("shell: quotes and backslashes are read as a shell reads them") {
  CHECK(zs::shell_words("  --a 'b c'\t\"d'\\\"e\\f\" g\\ h i'j'k '' ") ==
        Words{"--a", "b c", "d'\"e\\f", "g h", "ijk", ""});
  CHECK(zs::shell_words(" ").empty());
  CHECK_THROWS_WITH_AS(zs::shell_words("--name it's"), "unmatched quote in --name it's", zs::Error);
}
