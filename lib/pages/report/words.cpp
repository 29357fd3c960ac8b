// SPDX-License-Identifier: Apache-2.0
#include "report/words.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/number.hpp"

namespace zs::report {
namespace {

namespace fs = std::filesystem;
using summary::Condition;

/// The lines and steps of a run that a number of the summary came from.
struct Place {
  bool found = false;
  long first_line = 0, last_line = 0;
  std::string step;
};

Place span(const stat::Point& first, const stat::Point& last) {
  const auto line = [](const stat::Point& point) {
    return metric::is_absent(point.line) ? 0 : static_cast<long>(point.line);
  };
  const auto step = [](const stat::Point& point) {
    return metric::is_absent(point.step) ? std::string() : to_text(point.step);
  };
  return {true, line(first), line(last), step(first) == step(last) ? step(first) : step(first) + " to " + step(last)};
}

/// The record with the largest value of a column of bytes, over all ranks.
Place largest(const metric::Run& run, const std::string& column) {
  const metric::Column* const values = run.records.find(column);
  std::size_t best = values && values->type() == metric::Type::integer ? values->size() : 0;
  for (std::size_t row = 0, rows = best; row < rows; ++row) {
    if (!values->absent(row) && (best == rows || values->integers()[row] > values->integers()[best])) best = row;
  }
  if (!values || best == values->size()) return {};
  const auto cell = [&](const char* name) {
    const metric::Column* const found = run.records.find(name);
    return found ? found->text(best) : "";
  };
  const long line = static_cast<long>(parse_int(cell("line")).value_or(0));
  return {true, line, line, cell("step")};
}

Place place_of(const summary::Member& member, const std::string& column) {
  if (column == "peak_mem" || column == "alloc_mem") return largest(*member.run, column);
  const bool of_time = column.starts_with("time_") || column == "tokens_per_second";
  const auto value = [&](const stat::Point& point) {
    if (of_time) return point.timed ? point.time : metric::absent_real();
    if (column == "valid_loss") return point.valid_loss;
    if (column == "comm_bytes") return point.comm_bytes;
    return point.loss;
  };
  std::vector<const stat::Point*> points;
  for (const stat::Point& point : member.series().points) {
    if (!metric::is_absent(value(point))) points.push_back(&point);
  }
  if (points.empty()) return {};
  if (column == "first_loss") return span(*points.front(), *points.front());
  if (column == "final_loss" || column == "valid_loss") return span(*points.back(), *points.back());
  if (column == "best_loss") {
    const auto best =
        std::ranges::min_element(points, [](const stat::Point* a, const stat::Point* b) { return a->loss < b->loss; });
    return span(**best, **best);
  }
  return span(*points.front(), *points.back());
}

}  // namespace

Text joined(const std::vector<Text>& texts, const char* between, const char* last) {
  Text text;
  for (std::size_t i = 0; i < texts.size(); ++i)
    text += say("{}{}", i == 0 ? "" : i + 1 == texts.size() ? last : between, texts[i]);
  return text;
}

Text names(const std::vector<const Condition*>& conditions, std::size_t most) {
  std::vector<Text> texts;
  const std::size_t shown = conditions.size() > most ? most - 1 : conditions.size();
  for (std::size_t i = 0; i < shown; ++i) texts.push_back(code(conditions[i]->name));
  if (shown == conditions.size()) return joined(texts);
  return say("{} and {} more", joined(texts, ", ", ", "), std::to_string(conditions.size() - shown));
}

std::string titled(const attribute::Attribute& row) {
  return std::string(row.label) + (row.unit.empty() ? "" : " (" + std::string(row.unit) + ")");
}

std::string loss_text(double value) {
  const std::string whole = to_text(value);
  if (whole.size() <= 8 || !std::isfinite(value)) return whole;
  return fmt::format("{:.6g}", value);
}

std::string beside_repeats(const summary::Pair& pair, const std::string& unit) {
  if (!pair.outside_difference || !pair.outside_spread || !std::isfinite(*pair.outside_difference)) return "";
  return fmt::format(" (by {} in the mean of a tenth of the steps, where repeated runs vary by {})",
                     loss_text(*pair.outside_difference, unit), loss_text(*pair.outside_spread));
}

std::string percent(double ratio) {
  if (!std::isfinite(ratio)) return to_text(ratio);
  const double value = 100 * std::abs(ratio);
  return (ratio < 0 ? "-" : "") + (value >= 10 ? fmt::format("{:.0f}", value) : fmt::format("{:.2g}", value)) + " %";
}

std::string status_text(const Condition& condition) {
  const std::string code = condition.attribute("exit_code");
  std::string reason = condition.reason;
  if (reason.empty() && !code.empty() && code != "0") reason = "exit code " + code;
  std::string text = condition.status + (reason.empty() ? "" : " (" + reason + ")");
  if (!condition.bad() || !condition.attribute("failure").empty()) return text;
  const std::string expected = condition.attribute("expected_steps");
  if (condition.count("points") == 0) return text + " before its first metric line";
  if (condition["final_step"] && reason.find("step") == std::string::npos)
    text += " at step " + std::to_string(condition.count("final_step")) + (expected.empty() ? "" : " of " + expected);
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

Span Tracer::number(const Condition& condition, Condition::Column which, const std::string& text) {
  const std::string column(which.row().name);
  const double value = condition[which].value_or(0);
  Origin origin;
  origin.what = column + " of " + condition.name;
  const bool whole = std::abs(value) < 9e15 && value == std::trunc(value);
  origin.value = whole ? to_text(static_cast<std::int64_t>(value)) : to_text(value);
  bool traced = false;
  for (const summary::Member& member : condition.members) {
    const Place place = place_of(member, column);
    if (!place.found) continue;
    const std::string path = member.run->attribute("source");
    if (!traced) {
      origin.run = member.run->name;
      origin.path = path;
      origin.first_line = place.first_line, origin.last_line = place.last_line;
      origin.step = place.step;
    } else {  // several runs: all are named, and the place is a list of places
      origin.run += ", " + member.run->name;
      Origin other;
      other.path = path, other.first_line = place.first_line, other.last_line = place.last_line;
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
