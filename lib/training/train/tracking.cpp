// SPDX-License-Identifier: Apache-2.0
#include "train/tracking.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/file.hpp"
#include "base/host.hpp"
#include "base/number.hpp"
#include "metric/unit.hpp"
#include "registry/record.hpp"

namespace zs::train {
namespace {

constexpr double kLong = 120;          // s: work of which people like to know before
constexpr std::int64_t kMeasured = 3;  // steps that predict the time of the rest

/// "12.3 k", "950".
std::string rate_text(double per_second) {
  for (const auto& [factor, name] : {std::pair{1e9, " G"}, {1e6, " M"}, {1e3, " k"}}) {
    if (per_second >= factor) return to_rounded_text(per_second / factor, 3) + name;
  }
  return to_rounded_text(per_second, 3);
}

}  // namespace

Tracking::Tracking(const Settings& settings, const registry::Run& run) {
  if (settings.tensorboard)
    tensorboard_.emplace(settings.tensorboard->empty() ? run.folder() + "/tensorboard" : *settings.tensorboard);
  if (!settings.wandb) return;
  const registry::Fields record = registry::read_record(run.folder());
  tracker::WandbRun wandb = *settings.wandb;
  if (wandb.place.empty()) wandb.place = environment_variable("WANDB_DIR");
  if (wandb.place.empty()) wandb.place = run.folder();
  wandb.id = registry::value(record, "wandb_run");
  wandb.folder = registry::value(record, "wandb_folder");
  if (wandb.name.empty()) wandb.name = registry::value(record, "run_name");
  wandb_.emplace(std::move(wandb));
  fields_ = {{"wandb_run", wandb_->id()}, {"wandb_folder", std::filesystem::absolute(wandb_->folder()).string()}};
}

std::vector<metric::Writer*> Tracking::writers() {
  std::vector<metric::Writer*> writers;
  if (tensorboard_) writers.push_back(&*tensorboard_);
  if (wandb_) writers.push_back(&*wandb_);
  return writers;
}

void Tracking::output(const std::string& line) {
  if (wandb_) wandb_->output(line);
}

void Tracking::close(int exit_code) {
  if (wandb_) wandb_->close(exit_code);
}

std::string progress_line(std::int64_t step, std::int64_t steps, double loss, double per_second,
                          const std::string& what, double left) {
  const double share = static_cast<double>(step) / static_cast<double>(std::max<std::int64_t>(steps, 1));
  std::string text =
      cli::bar(share, 22) + " step " + to_text(step) + "/" + to_text(steps) + "  loss " + to_rounded_text(loss, 5);
  if (per_second > 0) text += "  " + rate_text(per_second) + " " + what + "/s";
  return text + "  " + cli::clock_text(left) + " left";
}

Display::Display(const cli::Command& command, std::string log)
    : command_(command), log_(std::move(log)), on_terminal_(::isatty(STDOUT_FILENO) == 1) {}

void Display::print(const std::string& line) {
  if (closed_) return;
  errno = 0;
  try {
    Output out("-");
    out.write(line + "\n");
    out.commit();
  } catch (const Error&) {
    if (errno != EPIPE) throw;
    closed_ = true;  // a training does not end with its reader
    cli::warn(command_, "stdout was closed: the training continues, its log is " + log_);
  }
}

void Display::log(const std::string& line) {
  const bool for_people = line.starts_with("note: ");
  if (on_terminal_ && line_.on_terminal() && !for_people) return;
  line_.clear();
  print(line);
}

void Display::step(const metric::Table& records, std::int64_t steps) {
  if (!line_.on_terminal()) return;
  const auto last = [&](std::string_view name) {
    const metric::Column* const column = records.find(name);
    return column && column->size() > 0 && !column->absent(column->size() - 1) ? column->real(column->size() - 1) : 0.0;
  };
  const auto step = static_cast<std::int64_t>(last("step"));
  if (first_ == Clock::time_point{})
    first_ = Clock::now();
  else
    ++counted_;
  const double passed = std::chrono::duration<double>(Clock::now() - first_).count();
  const double each = counted_ > 0 ? passed / static_cast<double>(counted_) : last("iteration_time");
  const double left = each * static_cast<double>(steps - step);
  if (!announced_ && counted_ >= kMeasured) {
    announced_ = true;
    line_.clear();
    if (left > kLong)
      cli::tell(command_, cli::about(left) + " for " + to_text(steps - step) + " more steps; Ctrl-C saves and stops");
  }
  if (!line_.due(step == steps)) return;
  const std::string what(records.find(metric::kImages) ? metric::kImages : "tokens");
  line_.show(progress_line(step, steps, last("loss"), each > 0 ? last(what) / each : 0, what, left));
}

void Display::end(double loss, const std::string& digest) {
  line_.clear();
  if (!on_terminal_ || !line_.on_terminal()) return;
  print("final loss " + to_rounded_text(loss, 6) + ", state digest " + digest + "\nlog: " + log_);
}

}  // namespace zs::train
