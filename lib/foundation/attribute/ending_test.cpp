// SPDX-License-Identifier: Apache-2.0
#include "attribute/state.hpp"

#include <doctest/doctest.h>

#include <map>

namespace zs::attribute {
namespace {

std::string told(const std::map<std::string, std::string>& facts) {
  return reason([&](const char* name) {
    const auto found = facts.find(name);
    return found == facts.end() ? std::string() : found->second;
  });
}

TEST_CASE("ending: the first cause that is known is the reason, with its rank") {
  CHECK(told({}).empty());
  CHECK(told({{"exit_code", "0"}}).empty());
  CHECK(told({{"exit_code", "3"}}) == "exit code 3");
  CHECK(told({{"exit_code", "137"}}) == "ended by SIGKILL");
  CHECK(told({{"exit_code", "-15"}}) == "ended by SIGTERM");
  CHECK(told({{"exit_code", "255"}}) == "exit code 255");
  CHECK(told({{"exit_code", "1"}, {"error", "KeyError: 'x'"}}) == "KeyError: 'x'");
  CHECK(told({{"exit_code", "1"}, {"error", "KeyError: 'x'"}, {"error_rank", "3"}}) == "rank 3: KeyError: 'x'");
  CHECK(told({{"error", "rank 3: KeyError: 'x'"}, {"error_rank", "3"}}) == "rank 3: KeyError: 'x'");
  CHECK(told({{"failure", "does not build"}, {"error", "x"}}) == "does not build");
}

}  // namespace
}  // namespace zs::attribute
