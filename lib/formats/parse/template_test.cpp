// SPDX-License-Identifier: Apache-2.0
#include "parse/template.hpp"

#include <doctest/doctest.h>

namespace zs::parse {
namespace {

/// What a template learned from "a 10, x 2.5, b True;" makes of `line`: its cells, or "refused".
std::string matched(std::string line, bool json = false) {
  const std::string first = "a 10, x 2.5, b True;";
  const std::string_view text = first;
  Template form;
  REQUIRE(form.learn(text,
                     {{{"x", text.substr(8, 3), Kind::real}, 1, metric::Type::real},
                      {{"a", text.substr(2, 2), Kind::integer}, 0, metric::Type::integer},
                      {{"b", text.substr(15, 4), Kind::word}, 2, metric::Type::integer}},
                     json));
  const std::size_t size = line.size() + 1;
  line += '\n' + std::string(Template::kSlack, '\0');
  std::vector<std::string_view> cells(3);
  const char* const end = form.match(line.data(), line.data() + size, cells);
  if (!end) return "refused";
  CHECK(end == line.data() + size - 1);
  return std::string(cells[0]) + " " + std::string(cells[1]) + " " + std::string(cells[2]);
}

TEST_CASE("template: a line of the same form has its numbers found, whatever their length") {
  CHECK(matched("a 10, x 2.5, b True;") == "10 2.5 1");
  CHECK(matched("a 7, x -0.481266260147, b False;") == "7 -0.481266260147 0");
  CHECK(matched("a 123456789012345678, x 3, b True;") == "123456789012345678 3 1");
  CHECK(matched("a 1, x 1e-05, b True;") == "1 1e-05 1");
  CHECK(matched("a 1, x 5., b True;") == "1 5. 1");
}

TEST_CASE("template: where a dialect might see something else, the line is refused") {
  for (const char* const line :
       {"a 1.5, x 2.5, b True;", "a 1e5, x 2.5, b True;", "a 1234567890123456789, x 2.5, b True;",
        "a 1, x nan, b True;", "a 1, x , b True;", "a 1, x .5, b True;", "a 1, x 1e-400, b True;", "a 1, x 2e, b True;",
        "a 1, x 2.5, b true;", "a 1, x 2.5, b True", "a 1, x 2.5, b True; ", "a 1, y 2.5, b True;",
        "a 1, x 2.5.1, b True;", "a +1, x 2.5, b True;", "a -1, x 2.5, b True;", "a -10, x 2.5, b True;",
        "a 1, x 12345678901234567890.123456789012, b True;", "", "a"}) {
    CAPTURE(line);
    CHECK(matched(line) == "refused");
  }
  CHECK(matched("a 01, x 2.5, b True;") == "01 2.5 1");
  CHECK(matched("a 01, x 2.5, b True;", true) == "refused");
  CHECK(matched("a 1, x 5., b True;", true) == "refused");
}

TEST_CASE("template: a rank has few digits, as launchers write it") {
  const std::string first = "[rank3] a 10;";
  const std::string_view text = first;
  for (const auto& [rank, fits] : {std::pair("123456789", true), {"1234567890", false}, {"-3", false}}) {
    CAPTURE(rank);
    Template form;
    REQUIRE(form.learn(text, {{{"rank", text.substr(5, 1), Kind::integer}, 0, metric::Type::integer},
                              {{"a", text.substr(10, 2), Kind::integer}, 1, metric::Type::integer}}));
    const std::string line = "[rank" + std::string(rank) + "] a 11;\n";
    const std::string padded = line + std::string(Template::kSlack, '\0');
    std::vector<std::string_view> cells(2);
    CHECK((form.match(padded.data(), padded.data() + line.size(), cells) != nullptr) == fits);
  }
}

TEST_CASE("template: a line whose values are not numbers in it is not learned") {
  Template form;
  const std::string_view line = "note: abc";
  CHECK_FALSE(form.learn(line, {{{"note", line.substr(6), Kind::word}, 0, metric::Type::text}}));
  CHECK_FALSE(form.learn(line, {{{"x", "1", Kind::integer}, 0, metric::Type::integer}}));
  CHECK_FALSE(form.learn(line, {}));
  CHECK_FALSE(form.learned());
}

}  // namespace
}  // namespace zs::parse
