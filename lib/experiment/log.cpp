// SPDX-License-Identifier: Apache-2.0
#include "experiment/log.hpp"

#include <algorithm>
#include <array>

#include "base/number.hpp"

namespace zs::experiment {
namespace {

/// Takes the next line off `text`, without its end.
std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

/// The part of `line` between `before` and the next of `ends`; "" where `before` does not stand there.
std::string_view between(std::string_view line, std::string_view before, std::string_view ends) {
  const std::size_t at = line.find(before);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + before.size());
  return line.substr(0, std::min(line.find_first_of(ends), line.size()));
}

/// The step of a step line, "Epoch 1, Step 12, Loss: 3.2 ..."; 0 of another line.
std::int64_t step_of(std::string_view line) {
  if (line.find(", Loss: ") == std::string_view::npos) return 0;
  return parse_int(between(line, ", Step ", ",")).value_or(0);
}

}  // namespace

std::string log_up_to(std::string_view log, std::int64_t done) {
  static constexpr std::array<std::string_view, 4> kOfTheEnd = {"Summary: ", "state_digest: ", "srun: ", "slurmstepd"};
  std::string kept;
  while (!log.empty()) {
    const std::string_view line = next_line(log);
    const bool end = std::any_of(kOfTheEnd.begin(), kOfTheEnd.end(), [&](auto word) { return line.starts_with(word); });
    if (!end && step_of(line) <= done) kept.append(line).append("\n");
  }
  return kept;
}

void add_lines(std::string_view text, Reached& reached) {
  while (!text.empty()) {
    const std::string_view line = next_line(text);
    if (line.starts_with("run: expected_steps=")) reached.expected = parse_int(line.substr(20)).value_or(0);
    if (const std::int64_t step = step_of(line); step > 0) {
      reached.step = step;
      reached.loss = between(line, ", Loss: ", " ");
    }
  }
}

}  // namespace zs::experiment
