// SPDX-License-Identifier: Apache-2.0
#include "comm/agree.hpp"

#include <doctest/doctest.h>

#include <array>

namespace zs::comm {
namespace {

/// What each of four ranks throws in `body`; "" of one that does not.
std::array<std::string, 4> errors(const std::function<void(Group&)>& body) {
  std::array<std::string, 4> messages;
  run_in_process(4, [&](Group& group) {
    try {
      body(group);
    } catch (const SharedError& error) {
      messages[static_cast<std::size_t>(group.rank())] = error.what();
    }
    barrier(group, "end");  // the group is whole: nobody waits for anybody
  });
  return messages;
}

TEST_CASE("agree: one rank's text reaches all") {
  run_in_process(4, [](Group& group) {
    CHECK(broadcast(group, "from " + std::to_string(group.rank()), 2, "choice") == "from 2");
  });
}

TEST_CASE("agree: the same facts pass; one that differs, is missing or is more is named with both values") {
  CHECK(errors([](Group& group) {
          require_same(group, {{"a", "1"}, {"b", "2:3"}}, "start");
        }) == std::array<std::string, 4>{});
  struct Case {
    Facts odd;
    std::string words;
  };
  for (const Case& c : {Case{{{"a", "1"}, {"b", "3"}}, "the ranks differ in b: it is 2 for rank 0 on "},
                        Case{{{"a", "1"}}, "the ranks differ in b: it is 2 for rank 0 on "},
                        Case{{{"a", "1"}, {"b", "2"}, {"c", "4"}}, "the ranks differ in c: it is not set for rank 0"},
                        Case{{{"a", ""}, {"b", "2"}}, "the ranks differ in a: it is 1 for rank 0 on "},
                        Case{{{"b", "2"}, {"a", "1"}}, "the ranks have the same facts in another order"}}) {
    const auto messages = errors([&](Group& group) {
      require_same(group, group.rank() == 3 ? c.odd : Facts{{"a", "1"}, {"b", "2"}}, "start");
    });
    for (const std::string& text : messages) {
      CHECK(text == messages[0]);
      CHECK(text.starts_with("start: " + c.words));
    }
    if (!c.words.ends_with("order")) CHECK(messages[0].find(" for rank 3 on ") != std::string::npos);
  }
}

TEST_CASE("agree: a failure of one rank is thrown by all with its place, one of all ranks without") {
  const auto one = errors([](Group& group) {
    together(group, "reading", [&] {
      if (group.rank() >= 2) throw Error("x.txt: no such file " + std::to_string(group.rank()));
    });
  });
  for (const std::string& text : one) CHECK(text == one[0]);
  CHECK(one[0].starts_with("rank 2 on "));
  CHECK(one[0].ends_with(": x.txt: no such file 2"));
  const auto messages = errors([](Group& group) { together(group, "reading", [] { throw Error("the same"); }); });
  for (const std::string& text : messages) CHECK(text == "the same");
  CHECK(errors([](Group& group) { together(group, "reading", [] {}); }) == std::array<std::string, 4>{});
}

}  // namespace
}  // namespace zs::comm
