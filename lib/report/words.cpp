// SPDX-License-Identifier: Apache-2.0
#include "report/words.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/number.hpp"

namespace zs::report {
namespace {

namespace fs = std::filesystem;
using plot::Condition;

/// Which rows of a run a number of the summary came from: first and last row, or nothing.
struct Rows {
  bool found = false;
  std::size_t first = 0, last = 0;
};

/// The record column that a summary column is computed from.
std::string record_column(const std::string& column) {
  if (column.starts_with("time_") || column == "tokens_per_second") return "iteration_time";
  if (column.ends_with("_loss") && column != "valid_loss") return "loss";
  return column;
}

Rows rows_of(const metric::Run& run, const Condition& condition, const std::string& column) {
  const metric::Column* const values = run.records.find(record_column(column));
  if (!values || values->type() == metric::Type::text) return {};
  std::vector<std::size_t> present;
  for (std::size_t row = 0; row < values->size(); ++row) {
    if (!values->absent(row)) present.push_back(row);
  }
  if (present.empty()) return {};
  const auto smaller = [&](std::size_t a, std::size_t b) { return values->real(a) < values->real(b); };
  if (column.starts_with("first_")) return {true, present.front(), present.front()};
  if (column.starts_with("final_") || column == "valid_loss") return {true, present.back(), present.back()};
  if (column.starts_with("best_")) {
    const std::size_t row = *std::min_element(present.begin(), present.end(), smaller);
    return {true, row, row};
  }
  if (column == "peak_mem" || column == "alloc_mem") {
    const std::size_t row = *std::max_element(present.begin(), present.end(), smaller);
    return {true, row, row};
  }
  if (record_column(column) == "iteration_time" && condition.time_points && condition.members.size() == 1) {
    const auto used = static_cast<std::size_t>(std::max<std::int64_t>(1, *condition.time_points));
    if (used <= present.size()) return {true, present[present.size() - used], present.back()};
  }
  return {true, present.front(), present.back()};
}

std::string cell(const metric::Run& run, const char* column, std::size_t row) {
  const metric::Column* const found = run.records.find(column);
  return found ? found->text(row) : "";
}

long line_of(const metric::Run& run, std::size_t row) { return static_cast<long>(parse_int(cell(run, "line", row)).value_or(0)); }

}  // namespace

std::string counted(std::size_t count, const std::string& noun) {
  return to_text(static_cast<std::int64_t>(count)) + " " + noun + (count == 1 ? "" : "s");
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return text;
}

Text names(const std::vector<const Condition*>& conditions, std::size_t most) {
  Text text;
  const std::size_t shown = conditions.size() > most ? most - 1 : conditions.size();
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == conditions.size() ? " and " : ", ";
    text += code(conditions[i]->name);
  }
  if (shown < conditions.size()) text += " and " + to_text(static_cast<std::int64_t>(conditions.size() - shown)) + " more";
  return text;
}

std::string loss_text(double value) {
  const std::string whole = to_text(value);
  if (whole.size() <= 8 || !std::isfinite(value)) return whole;
  std::array<char, 40> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%.6g", value);
  return buffer.data();
}

std::string percent(double ratio) {
  if (!std::isfinite(ratio)) return to_text(ratio);
  const double value = 100 * std::abs(ratio);
  std::array<char, 40> buffer;
  if (value >= 10) std::snprintf(buffer.data(), buffer.size(), "%.0f", value);
  else std::snprintf(buffer.data(), buffer.size(), "%.2g", value);
  return (ratio < 0 ? "-" : "") + std::string(buffer.data()) + " %";
}

std::string status_text(const Condition& condition) {
  std::string text = condition.status;
  const std::string code = condition.attribute("exit_code");
  if (!code.empty() && code != "0") text += " (exit code " + code + ")";
  if (!condition.bad()) return text;
  const std::string expected = condition.attribute("expected_steps");
  if (condition.points.value_or(0) == 0) return text + " before its first metric line";
  if (condition.final_step) text += " at step " + to_text(*condition.final_step) + (expected.empty() ? "" : " of " + expected);
  return text;
}

std::string link_to(const std::string& path, const std::string& folder) {
  if (path.empty() || path == "stdin") return "";
  std::error_code error;
  const fs::path base = folder.empty() ? fs::path(".") : fs::path(folder);
  for (const fs::path& candidate : {fs::path(path), base / path, base / fs::path(path).filename()}) {
    if (!fs::is_regular_file(candidate, error)) continue;
    const fs::path relative = fs::relative(candidate, base, error);
    if (!error && !relative.empty()) return relative.generic_string();
  }
  return "";
}

Span Tracer::number(const Condition& condition, const std::string& column, double value, const std::string& text) {
  Origin origin;
  origin.what = column + " of " + condition.name;
  const bool whole = std::abs(value) < 9e15 && value == std::trunc(value);
  origin.value = whole ? to_text(static_cast<std::int64_t>(value)) : to_text(value);
  bool traced = false;
  for (const metric::Run* const run : condition.members) {
    const Rows rows = rows_of(*run, condition, column);
    if (!rows.found) continue;
    const std::string path = run->attribute("source");
    const long first = line_of(*run, rows.first), last = line_of(*run, rows.last);
    if (!traced) {
      origin.run = run->name;
      origin.path = path;
      origin.first_line = first, origin.last_line = last;
      const std::string from = cell(*run, "step", rows.first), to = cell(*run, "step", rows.last);
      origin.step = from == to ? from : from + " to " + to;
    } else {  // several runs: all are named, and the place is a list of places
      origin.run += ", " + run->name;
      Origin other;
      other.path = path, other.first_line = first, other.last_line = last;
      if (!other.place().empty()) origin.path = origin.place() + ", " + other.place();
      origin.first_line = origin.last_line = 0;
    }
    traced = true;
  }
  if (!traced) return {text};
  if (origin.first_line > 0) origin.link = link_to(origin.path, folder_);
  document_.origins.push_back(std::move(origin));
  return {text, Span::Look::plain, static_cast<int>(document_.origins.size()) - 1};
}

}  // namespace zs::report
