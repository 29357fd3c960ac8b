// SPDX-License-Identifier: Apache-2.0
#include "stat/status.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "base/number.hpp"

namespace zs::stat {
namespace {

using metric::is_absent;

constexpr std::array<std::string_view, 6> kNames = {"COMPLETE", "UNKNOWN", "TRUNCATED", "DEAD", "DIVERGED", "FAILED"};
constexpr std::size_t kFewestForFlat = 3;

/// " at step 30 (run.log:42)", as far as it is known.
std::string place(const metric::Run& run, const Point& point) {
  std::string text;
  if (!is_absent(point.step)) text += " at step " + to_text(point.step);
  if (is_absent(point.line)) return text;
  const std::string file = std::filesystem::path(run.attribute("source")).filename().string();
  return text + " (" + (file.empty() ? "line " : file + ":") + to_text(point.line) + ")";
}

/// Why the run is dead, or "".
std::string dead(const Series& series) {
  std::size_t losses = 0, norms = 0;
  bool flat = true, zero = true;
  double first = 0;
  for (const Point& point : series.points) {
    if (!is_absent(point.loss)) {
      if (losses++ == 0) first = point.loss;
      flat = flat && point.loss == first;
    }
    if (!is_absent(point.grad_norm)) {
      ++norms;
      zero = zero && point.grad_norm == 0;
    }
  }
  if (losses >= kFewestForFlat && flat)
    return "the loss is " + to_text(first) + " at all " + std::to_string(losses) + " points";
  if (norms > 0 && zero) return "the gradient norm is 0 at all " + std::to_string(norms) + " points";
  return "";
}

}  // namespace

std::string_view name(RunStatus status) { return kNames[static_cast<std::size_t>(status)]; }

std::int64_t last_step(const metric::Run& run, const Series& series) {
  std::int64_t last = parse_int(run.attribute("summary.steps")).value_or(metric::kAbsentInteger);
  for (const Point& point : series.points) last = std::max(last, point.step);  // absent is the smallest integer
  return last;
}

Judgement judge(const metric::Run& run, const Series& series) {
  const std::string exit_code = run.attribute("exit_code"), failure = run.attribute("failure");
  const Judgement failed{RunStatus::failed, failure.empty() ? "exit code " + exit_code : failure};
  // Status 1 is also how a training ends that has diverged.
  const bool no = parse_int(exit_code) == 1;
  if (!exit_code.empty() && parse_int(exit_code) != 0 && !no) return failed;
  for (const Point& point : series.points) {
    if (!is_absent(point.loss) && !std::isfinite(point.loss)) {
      return {RunStatus::diverged, "the loss is " + to_text(point.loss) + place(run, point)};
    }
    if (!is_absent(point.valid_loss) && !std::isfinite(point.valid_loss)) {
      return {RunStatus::diverged, "the validation loss is " + to_text(point.valid_loss) + place(run, point)};
    }
  }
  if (series.other_rank) {
    return {RunStatus::diverged,
            "the loss of another rank is " + to_text(series.other_rank->loss) + place(run, *series.other_rank)};
  }
  if (no) return failed;
  if (const std::string reason = dead(series); !reason.empty()) return {RunStatus::dead, reason};
  const auto expected = parse_int(run.attribute("expected_steps"));
  if (!expected) {
    const char* const reason =
        series.points.empty() ? "no metric records" : "how many steps it should have is not known";
    return {RunStatus::unknown, reason};
  }
  const std::int64_t last = last_step(run, series);
  if (!series.points.empty() && last >= *expected) return {RunStatus::complete, ""};
  const std::string reached = series.points.empty() ? "no metric records" : "ends at step " + to_text(last);
  return {RunStatus::truncated, reached + " of " + to_text(*expected)};
}

}  // namespace zs::stat
