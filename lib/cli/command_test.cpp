// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include <doctest/doctest.h>

using zs::cli::Args;

TEST_CASE("cli: operands stand before, between and behind options") {
  const zs::cli::Command command = {"zs-x", "Do", "[FILE]...", {{'o', "output_file", "FILE", "write"}, {'q', "quiet", "", "say nothing"}}};
  const Args args = Args::parse(command, {"a", "--output-file", "b", "-", "-q", "c", "--", "-d"});
  CHECK(args.operands() == std::vector<std::string>{"a", "-", "c", "-d"});
  CHECK(args.text("output_file") == "b");
  CHECK(args.has("quiet"));
}
