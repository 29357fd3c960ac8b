// SPDX-License-Identifier: Apache-2.0
// The metric line of the reference format, which is that of zs-train: written, read, and found in a log to cut it
// there.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metric/table.hpp"
#include "parse/dialect.hpp"

namespace zs::parse {

/// Row `row` of a training's records as its log has it, without the line's end.
std::string step_line(const metric::Table& records, std::size_t row);

/// The log of a training that goes on behind step `done`: without the steps that will be trained again, and without its
/// result, or a step that is torn at its end.
std::string earlier_lines(std::string_view log, std::int64_t done);

/// The keys that a whole line has behind the loss.
inline constexpr std::array<std::string_view, 4> kCore = {"sync", "time", "alloc_mem", "peak_mem"};
inline constexpr unsigned kAllCore = (1U << kCore.size()) - 1;

/// What was read of one metric line.
struct Step {
  std::vector<Field> fields;
  unsigned core = 0;      ///< bit i: kCore[i] is there
  std::string_view rest;  ///< what was not read
  bool torn = false;      ///< other text follows: rest does not begin another step, and is not empty
  bool in_doubt = false;  ///< it follows at once, so that the last value may lack digits, or be another number
  std::string fault;      ///< why there is no record; fields are empty then
};

/// "Epoch " and a digit.
bool starts_step(std::string_view text);

/// Reads "Epoch 1, Step 40, Loss: 10.5 sync: True ..." or the same from "Step" on; nothing if it is not one.
/// `ended`: the line was, so that a short text is not just the end of the log.
std::optional<Step> read_step(std::string_view text, bool ended);

/// The first bytes of `text` in quotes, for messages.
std::string quoted_start(std::string_view text);

}  // namespace zs::parse
