// SPDX-License-Identifier: Apache-2.0
#include "experiment/watch.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/number.hpp"
#include "cli/progress.hpp"
#include "parse/log.hpp"

namespace zs::experiment {
namespace {

using Clock = std::chrono::steady_clock;

/// The last step of a log, and how fast it came to it.
class Latest : public metric::Writer {
 public:
  void row(const std::vector<metric::ColumnInfo>& columns, const std::vector<std::string_view>& cells) override {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (columns[i].name == "loss" && !cells[i].empty()) loss_ = cells[i];
      if (columns[i].name == "step") step_ = parse_int(cells[i]).value_or(step_);
    }
    if (!first_) first_ = step_, begin_ = Clock::now();
  }
  void finish(const Facts&) override {}

  /// "" before the first step.
  std::string text(std::int64_t steps, std::int64_t waiting) const {
    if (!first_) return "";
    std::string line = "step " + to_text(step_) + (steps > 0 ? "/" + to_text(steps) : "");
    if (!loss_.empty()) line += ", loss " + loss_;
    // Steps logged by an earlier part of the training do not count for the speed.
    const auto done = static_cast<double>(step_ - *first_);
    if (steps < step_ || done <= 0) return line;
    const double each = std::chrono::duration<double>(Clock::now() - begin_).count() / done;
    const double left = each * static_cast<double>(steps - step_);
    line += ", " + cli::clock_text(left) + " left";
    if (waiting < 2) return line;
    return line + ", " + cli::clock_text(left + each * static_cast<double>(steps * (waiting - 1))) + " for all";
  }

 private:
  std::string loss_;
  std::int64_t step_ = 0;
  std::optional<std::int64_t> first_;
  Clock::time_point begin_;
};

}  // namespace

void watch(pid_t training, const std::string& log, std::int64_t waiting,
           const std::function<void(const std::string&)>& tell) {
  std::atomic<bool> ended = false;
  const auto look = [&] { ended = ::kill(training, 0) != 0 && errno == ESRCH; };
  for (look(); !ended && !std::filesystem::exists(log); look())
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  if (ended) return;
  Latest latest;
  parse::Options options;
  options.follow_until = &ended;
  const FaultSink ignored = [](const Fault&) {};  // zs-parse reports them at the end
  const parse::LogReader* open = nullptr;
  options.caught_up = [&] {
    look();
    const std::string text = latest.text(parse_int(open->attribute("expected_steps")).value_or(0), waiting);
    if (!text.empty()) tell(text);
  };
  parse::LogReader reader(options, latest, ignored);
  open = &reader;
  reader.read(log);
}

}  // namespace zs::experiment
