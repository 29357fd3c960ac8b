// SPDX-License-Identifier: Apache-2.0
#include "stat/status.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "attribute/state.hpp"
#include "base/number.hpp"
#include "compare/precision.hpp"
#include "stat/steps.hpp"

namespace zs::stat {
namespace {

using metric::is_absent;

constexpr std::size_t kFewestForFlat = 3;

/// " at step 30 (run.log:42)", as far as it is known.
std::string place(const metric::Run& run, const Point& point) {
  std::string text;
  if (!is_absent(point.step)) text += " at step " + to_text(point.step);
  if (is_absent(point.line)) return text;
  const std::string file = std::filesystem::path(run.attribute("source")).filename().string();
  return text + " (" + (file.empty() ? "line " : file + ":") + to_text(point.line) + ")";
}

/// The values of a column of records, without those that are absent.
std::vector<double> values(const metric::Run& run, const char* name) {
  std::vector<double> found;
  const metric::Column* const column = run.records.find(name);
  if (!column || column->type() == metric::Type::text) return found;
  for (std::size_t row = 0; row < column->size(); ++row) {
    if (!column->absent(row)) found.push_back(column->real(row));
  }
  return found;
}

bool all(const std::vector<double>& values, double wanted) {
  return !values.empty() && std::ranges::all_of(values, [&](double value) { return value == wanted; });
}

/// Half a unit of the last digit that a log has of a column; 0 if every bit is known.
double uncertainty(const metric::Run& run, const char* name) {
  const metric::Column* const column = run.records.find(name);
  return column ? compare::precision_of(run, *column).uncertainty() : 0;
}

/// Why the parameters cannot have moved although steps were done, or "".
std::string unmoved(const metric::Run& run) {
  const std::vector<double> rates = values(run, "learning_rate"), skipped = values(run, "skipped");
  if (parse_real(run.attribute("learning_rate")) == 0.0) return "the learning rate is 0";
  // One or two points may be at the start or end of a schedule.
  if (rates.size() >= kFewestForFlat && all(rates, 0))
    return "the learning rate is 0 at all " + std::to_string(rates.size()) + " points";
  const std::vector<double> steps = values(run, "step");
  const double last = steps.empty() ? 0 : *std::ranges::max_element(steps);
  if (!skipped.empty() && last > 0 && *std::ranges::max_element(skipped) >= last)
    return "all " + to_text(static_cast<std::int64_t>(last)) + " steps were skipped: no gradient was finite";
  // Of Megatron: the iterations since the line before, of which a loss is only written if one was not skipped.
  const std::vector<double> each = values(run, "skipped_iterations");
  if (!each.empty() && values(run, "loss").empty() && std::ranges::all_of(each, [](double n) { return n > 0; }))
    return "every iteration was skipped: no gradient was finite";
  return "";
}

/// Where the losses end in iterations whose loss is nan or infinite, or "". Megatron counts these, and writes no loss.
std::string nan_iterations(const metric::Run& run) {
  const metric::Column* const counts = run.records.find("nan_iterations");
  if (!counts || counts->type() == metric::Type::text) return "";
  const metric::Column *const losses = run.records.find("loss"), *const steps = run.records.find("step");
  const std::size_t none = counts->size();
  std::size_t first = none;  // since the last loss
  for (std::size_t row = 0; row < counts->size(); ++row) {
    if (losses && !losses->absent(row)) first = none;
    if (first == none && !counts->absent(row) && counts->real(row) > 0 && (!losses || losses->absent(row))) first = row;
  }
  if (first == none) return "";
  const bool numbered = steps && steps->type() == metric::Type::integer && !steps->absent(first);
  return "the loss is not finite in the iterations" +
         (numbered ? " up to step " + to_text(steps->integers()[first]) : std::string()) + ", and no loss comes after";
}

/// Whether the losses fall or rise with the steps by more than their noise: t of the slope of a line through at least
/// five is beyond 5. Losses of a model that does not learn differ from batch to batch without such a trend.
bool has_trend(const std::vector<double>& losses) {
  const auto n = static_cast<double>(losses.size());
  if (losses.size() < 5) return false;
  const double mean = std::accumulate(losses.begin(), losses.end(), 0.0) / n, middle = (n - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double x = static_cast<double>(i) - middle, y = losses[i] - mean;
    xy += x * y, xx += x * x, yy += y * y;
  }
  const double rest = std::max(0.0, yy - xy * xy / xx);  // what the line leaves
  return yy > 0 && xy * xy / xx * (n - 2) > 25 * rest;
}

/// Why the run is dead, or "". Norms, rates and skipped steps prove nothing where the losses have a trend: some engines
/// log a gradient norm of 0 throughout.
std::string dead(const metric::Run& run, const Series& series) {
  std::vector<double> losses, norms;
  for (const Point& point : series.points) {
    if (!is_absent(point.loss)) losses.push_back(point.loss);
    if (!is_absent(point.grad_norm)) norms.push_back(point.grad_norm);
  }
  // The loss of GRPO is 0 although its gradient is not: rewards of a group have the mean 0.
  const bool moves = all(losses, 0) && std::ranges::any_of(norms, [](double norm) { return norm > 0; });
  // Losses of few digits may be equal although the parameters move.
  constexpr double kUnits = 100;  // of the last digit
  if (!moves && losses.size() >= kFewestForFlat && all(losses, losses.front()) &&
      (losses.front() == 0 || std::abs(losses.front()) >= kUnits * 2 * uncertainty(run, "loss")))
    return "the loss is " + to_text(losses.front()) + " at all " + std::to_string(losses.size()) + " points";
  if (has_trend(losses)) return "";
  if (!losses.empty() && all(norms, 0))
    return "the gradient norm is 0 at all " + std::to_string(norms.size()) + " points";
  return unmoved(run);
}

/// The point whose gradient norm has destroyed the parameters, or null. With a scaled loss (float16) a norm that is not
/// finite is a skipped step; then all must be so. If the number format is unknown, no later norm may be finite.
const Point* poisoned(const metric::Run& run, const Series& series) {
  const std::string dtype = run.attribute("dtype");
  const bool scale = run.records.find("loss_scale") || run.records.find("skipped");
  const bool scaled = dtype == "float16" || dtype == "fp16" || dtype == "half" || (dtype.empty() && scale);
  const Point* first = nullptr;  // since the last norm that is finite
  bool finite = false;
  for (const Point& point : series.points) {
    if (is_absent(point.grad_norm)) continue;
    if (!std::isfinite(point.grad_norm)) {
      if (!first) first = &point;
    } else {
      finite = true;
      if (scaled || dtype.empty()) first = nullptr;
    }
  }
  return scaled && finite ? nullptr : first;
}

/// The first value of another loss that is not finite, where the records have no column `loss`; or "".
std::string other_loss(const metric::Run& run, const Series& series) {
  if (run.records.find("loss")) return "";
  std::optional<std::pair<std::size_t, std::string>> first;
  for (const metric::Column& column : run.records.columns) {
    if (column.type() != metric::Type::real || column.name.find("loss") == std::string::npos) continue;
    for (std::size_t row = 0; row < column.size(); ++row) {
      if (column.absent(row) || std::isfinite(column.real(row))) continue;
      if (!first || row < first->first) first = {row, column.name + " is " + to_text(column.real(row))};
      break;
    }
  }
  if (!first) return "";
  const metric::Column* const line = run.records.find("line");
  const auto at = std::ranges::find_if(
      series.points, [&](const Point& p) { return line && p.line == line->integers()[first->first]; });
  return first->second + (at == series.points.end() ? "" : place(run, *at));
}

/// Whether the loss has grown out of any scale although it is finite: all of the last tenth is beyond ten times the
/// first tenth, and beyond the loss of guessing among any vocabulary.
std::string exploded(const Series& series) {
  constexpr double kGuess = 20;
  std::vector<double> losses;
  for (const Point& point : series.points) {
    if (!is_absent(point.loss)) losses.push_back(point.loss);
  }
  const std::size_t part = std::max<std::size_t>(2, losses.size() / 10);
  if (losses.size() < 2 * part) return "";
  const auto end = static_cast<std::ptrdiff_t>(part);
  const double begun = *std::max_element(losses.begin(), losses.begin() + end);
  const double ended = *std::min_element(losses.end() - end, losses.end());
  if (!(begun > 0) || !(ended > kGuess) || !(ended > 10 * begun)) return "";
  return "the loss has grown from " + to_text(losses.front()) + " to " + to_text(losses.back());
}

/// The missing steps among the expected ones, or "". With `whole`, nothing speaks against an end of the run behind its
/// last point. `unlogged` is set if steps at the end have no point, and would have none.
std::string missing(const metric::Run& run, const Series& series, std::int64_t expected, bool whole, bool& unlogged) {
  if (series.points.empty()) return "no metric records of " + to_text(expected);
  std::int64_t last = metric::kAbsentInteger, widest = 0;
  for (const Point& point : series.points) {
    if (!is_absent(last) && point.step > last) widest = std::max(widest, point.step - last);
    last = std::max(last, point.step);  // absent is the smallest integer
  }
  // Its own summary line may cover steps after the last logged point, but not a whole interval of them.
  const std::int64_t interval = log_interval(run, series);
  const std::int64_t told = parse_int(run.attribute("summary.steps")).value_or(metric::kAbsentInteger);
  const std::int64_t reach = !is_absent(interval) ? interval : widest > 0 ? widest : last;
  const bool silent = told >= expected && !is_absent(last) && expected - last < reach;
  const std::vector<std::int64_t> steps = training_steps(series);
  const bool from_zero = !steps.empty() && *std::ranges::min_element(steps) == 0;  // steps 0 to 11 are twelve
  const std::int64_t end = from_zero ? expected - 1 : expected;
  const std::int64_t next = next_step(run, series);
  const bool between = whole && !is_absent(next) && next > end;  // the end is no logged step
  if (last < end && !silent && !between) return "ends at step " + to_text(last) + " of " + to_text(expected);
  unlogged = last < end && !silent && last != expected - 1;  // where steps are counted from 0, it is the last
  const MissingSteps gap = missing_steps(run, series);
  if (gap.count == 0) return "";
  const std::string which = gap.count == 1
                                ? "step " + to_text(gap.first) + " is missing"
                                : to_text(gap.count) + " logged steps are missing, the first is " + to_text(gap.first);
  return which + (gap.after ? ", after the one" + place(run, *gap.after) : "");
}

}  // namespace

std::int64_t last_step(const metric::Run& run, const Series& series) {
  std::int64_t last = parse_int(run.attribute("summary.steps")).value_or(metric::kAbsentInteger);
  for (const Point& point : series.points) last = std::max(last, point.step);  // absent is the smallest integer
  return last;
}

Judgement judge(const metric::Run& run, const Series& series) {
  const std::string exit_code = run.attribute("exit_code");
  for (const RunState found : {RunState::missing, RunState::cancelled}) {
    if (run.attribute("found.state") == name(found)) return {found, run.attribute("found.basis")};
  }
  const Judgement failed{RunState::failed, attribute::reason([&](const char* name) { return run.attribute(name); })};
  // Status 1 is also how a training ends that has diverged.
  const bool no = parse_int(exit_code) == 1;
  if (!exit_code.empty() && parse_int(exit_code) != 0 && !no) return failed;
  for (const Point& point : series.points) {
    if (!is_absent(point.loss) && !std::isfinite(point.loss)) {
      return {RunState::diverged, "the loss is " + to_text(point.loss) + place(run, point)};
    }
    if (!is_absent(point.valid_loss) && !std::isfinite(point.valid_loss)) {
      return {RunState::diverged, "the validation loss is " + to_text(point.valid_loss) + place(run, point)};
    }
  }
  for (const std::string& reason : {other_loss(run, series), nan_iterations(run), exploded(series)}) {
    if (!reason.empty()) return {RunState::diverged, reason};
  }
  if (series.other_rank) {
    return {RunState::diverged,
            "the loss of another rank is " + to_text(series.other_rank->loss) + place(run, *series.other_rank)};
  }
  const Point* const point = poisoned(run, series);
  if (no && !point) return failed;
  if (const std::string reason = dead(run, series); !reason.empty()) return {RunState::dead, reason};
  if (point) {
    return {RunState::diverged, "the gradient norm is " + to_text(point->grad_norm) + place(run, *point)};
  }
  const bool fell = exit_code.empty() && run.attribute("exit_state") == "failed" && !run.attribute("error").empty();
  const std::string error = fell ? failed.reason : "";
  auto expected = expected_steps(run, series);
  // The Trainer's closing line: a callback may end the training before its last step.
  if (expected && run.attribute("exit_state") == "finished" && !run.attribute("summary.train_runtime").empty())
    expected = std::min(*expected, std::max<std::int64_t>(1, last_step(run, series)));
  const bool finished = run.attribute("exit_state") == "finished" || exit_code == "0";
  if (!expected) {
    if (finished && !series.points.empty() && run.attribute("expected_steps").empty()) return {RunState::complete, ""};
    const std::string said = run.attribute("expected_steps");
    if (!error.empty()) return {RunState::failed, error};
    return {RunState::unknown, series.points.empty() ? "no metric records"
                               : said.empty()        ? "ended, not known to be complete"
                                                     : "it should have '" + said + "' steps"};
  }
  bool unlogged = false;
  const std::string reason = missing(run, series, *expected, error.empty(), unlogged);
  if (!reason.empty() && !error.empty()) return {RunState::failed, error + "; " + reason};
  if (reason.empty() && unlogged && !finished)
    return {RunState::unknown, "ends at step " + to_text(last_step(run, series)) + " of " + to_text(*expected) +
                                   ", and would log none of the others"};
  return {reason.empty() ? RunState::complete : RunState::truncated, reason};
}

}  // namespace zs::stat
