// SPDX-License-Identifier: Apache-2.0
// The metric line of the reference format, which zs-train uses: writes it, reads it, and finds it in a log to truncate
// the log there.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metric/table.hpp"
#include "parse/dialect.hpp"

namespace zs::parse {

/// Row `row` of a training's records as a log line, without its end.
std::string step_line(const metric::Table& records, std::size_t row);

/// The log of a training resumed after step `done`: without the steps that will be repeated, its result, and an
/// incomplete step at its end.
std::string earlier_lines(std::string_view log, std::int64_t done);

/// The keys that a complete line has after the loss.
inline constexpr std::array<std::string_view, 4> kCore = {"sync", "time", "alloc_mem", "peak_mem"};
inline constexpr unsigned kAllCore = (1U << kCore.size()) - 1;

/// A metric line as it was parsed.
struct Step {
  std::vector<Field> fields;
  unsigned core = 0;      ///< bit i: kCore[i] is there
  std::string_view rest;  ///< the unread part
  bool torn = false;      ///< followed by other text: rest is not empty and does not begin another step
  bool in_doubt = false;  ///< the text follows without a blank, so the last value may be incomplete or another number
  std::string fault;      ///< the reason if there is no record; then fields are empty
};

/// "Epoch " and a digit.
bool starts_step(std::string_view text);

/// Reads "Epoch 1, Step 40, Loss: 10.5 sync: True ..." or the same from "Step" on; nothing if it is not one. `ended`:
/// the line is complete, so that a short text is not merely the end of the log.
std::optional<Step> read_step(std::string_view text, bool ended);

/// The first bytes of `text` in quotes, for messages.
std::string quoted_start(std::string_view text);

}  // namespace zs::parse
