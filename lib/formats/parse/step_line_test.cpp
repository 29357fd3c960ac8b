// SPDX-License-Identifier: Apache-2.0
#include "parse/step_line.hpp"

#include <doctest/doctest.h>

#include "base/number.hpp"

namespace zs::parse {
namespace {

metric::Table records() {
  metric::Table table;
  for (const char* const name : {"step", "epoch", "loss", "iteration_time", "alloc_mem", "peak_mem", "valid_loss"})
    table.column(name);
  std::size_t column = 0;
  for (const char* const cell : {"1", "1", "1e-05", "0.25", "7", "8", ""}) {
    REQUIRE(table.columns[column++].append(cell));
  }
  return table;
}

TEST_CASE("step line: what is written is read back, value for value") {
  const std::string line = step_line(records(), 0);
  CHECK(line == "Epoch 1, Step 1, Loss: 0.00001 sync: True time: 0.25 alloc_mem: 7 peak_mem: 8");
  const auto step = read_step(line, true);
  REQUIRE(step);
  CHECK(step->core == kAllCore);
  CHECK_FALSE(step->torn);
  CHECK(step->fields.front().value == "1");
  CHECK(parse_real(step->fields[2].value) == 1e-05);
}

TEST_CASE("step line: a log is cut behind a step, its result and a torn end go") {
  const std::string head = "run: seed=7\nnote: Step 9, of nothing\n";
  std::string log = head;
  for (int step = 1; step <= 12; ++step) log += "Epoch 1, Step " + std::to_string(step) + ", Loss: 2.5 sync: True\n";
  const std::string up_to_9 = log.substr(0, log.find("Epoch 1, Step 10"));
  CHECK(earlier_lines(log, 9) == up_to_9);
  CHECK(earlier_lines(log, 12) == log);
  CHECK(earlier_lines(log, 0) == head);
  CHECK(earlier_lines(log + "Summary: steps: 12\nstate_digest: 00\n", 12) == log);
  CHECK(earlier_lines(log + "Epoch 1, Step 1", 12) == log);  // of step 13
  CHECK(earlier_lines(log + "Epoch 1, Ste\n", 12) == log);
  CHECK(earlier_lines(log + "Epo", 12) == log);
  CHECK(earlier_lines(log + "zs-train: no room", 12) == log + "zs-train: no room\n");
  CHECK(earlier_lines("", 3).empty());
}

}  // namespace
}  // namespace zs::parse
