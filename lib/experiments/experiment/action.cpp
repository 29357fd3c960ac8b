// SPDX-License-Identifier: Apache-2.0
#include "experiment/action.hpp"

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <thread>

#include "base/file.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "cli/progress.hpp"
#include "cli/run.hpp"
#include "experiment/plan.hpp"
#include "experiment/rerun.hpp"
#include "experiment/start.hpp"
#include "input/named.hpp"
#include "parse/custom.hpp"
#include "parse/log.hpp"
#include "registry/runs.hpp"

namespace zs::experiment {
namespace {

// The progress of a training from its log, for the person at the terminal.

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

/// Follows the log of a training until the process `training` has ended, and reports progress: "step 10/100, loss 5.5,
/// 0:00:10 left, 0:01:20 for all". `waiting`: number of trainings that have not ended, including this one; "for all" is
/// shown if there are several, assuming that all take as long. The log may be created later, and be any log that
/// zs-parse reads.
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

using Words = std::vector<std::string>;

/// Takes the operand at the front, a folder, whose words may be run.
std::string take_folder(Words& words, const cli::Args& args) {
  const std::string folder = words.front();
  words.erase(words.begin());
  if (!args.has("any_owner")) require_own(folder);
  return folder;
}

Status plan_again(const cli::Args& args) {
  Words words = operands(args, 1, true, "--again WHICH FOLDER [NAME=VALUE]... [-]");
  const std::string folder = take_folder(words, args);
  const bool named = !words.empty() && words.back() == "-";
  if (named) words.pop_back();
  const Words names = named ? lines_of(Input("-").read_all()) : Words();
  std::string text;
  for (const Cell& cell : experiment::plan_again(folder, args.text("again") == "unfinished", named ? &names : nullptr,
                                                 registry::parse_fields(words)))
    text += cell.name + "\t" + cell.run() + "\n";
  print(text);
  return Status::done;
}

Status plan(const cli::Args& args) {
  if (args.has("again")) return plan_again(args);
  const auto fields = registry::parse_fields(operands(args, 0, true, "[NAME=VALUE]... [-- CELL WORD...]"));
  std::vector<Cell> cells;
  if (args.behind().empty())
    cells = read_cells(Input("-").read_all());
  else
    cells.push_back({args.behind().front(), {args.behind().begin() + 1, args.behind().end()}});
  const bool many = !registry::value(fields, "experiment").empty();
  std::string text;
  for (const Cell& cell : many ? plan_experiment(cells, fields).cells : experiment::plan(cells, fields)) {
    if (!many) freeze(cell.run() + "/frozen.sha256", files_of(cell), is_foreign(cell.fields));
    text += cell.name + "\t" + cell.run() + "\n";
  }
  print(text);
  return Status::done;
}

/// The status of env and timeout for this case: a program that they start may end with any smaller one.
constexpr auto kNothingStarted = static_cast<Status>(125);

Status start(const cli::Args& args) {
  Words words = operands(args, 1, true, "FOLDER [CELL] -- LAUNCHER...");
  if (words.size() > 2 || args.behind().empty()) throw UsageError("expected start FOLDER [CELL] -- LAUNCHER...");
  try {
    const std::string folder = take_folder(words, args);
    const Start start = prepare(folder, words.empty() ? "" : words[0], args.behind());
    if (!start.label.empty()) std::cerr << printable(start.label) << std::endl;
    become(start);
  } catch (const std::exception& error) {
    cli::tell(args.command(), error.what());
    return kNothingStarted;
  }
}

Status finish(const cli::Args& args) {
  const Words words = operands(args, 3, true, "FOLDER CELL exit_code=CODE [NAME=VALUE]...");
  const auto fields = registry::parse_fields({words.begin() + 2, words.end()});
  if (!parse_int(registry::value(fields, "exit_code"))) throw UsageError("finish needs exit_code=CODE, a number");
  print(experiment::finish(words[0], words[1], fields) + "\n");
  return Status::done;
}

Status state(const cli::Args& args) {
  const std::string bad = conclude(operands(args, 1, false, "FOLDER").front());
  print(bad);
  return bad.empty() ? Status::done : Status::no;
}

Status watch(const cli::Args& args) {
  const Words words = operands(args, 4, false, "PROCESS LOG CELL WAITING");
  const auto process = parse_int(words[0]), waiting = parse_int(words[3]);
  if (!process || !waiting) throw UsageError("watch needs the numbers PROCESS and WAITING");
  parse::customize(args.text("patterns"));
  cli::ProgressLine line;
  if (!line.on_terminal()) return Status::done;
  experiment::watch(static_cast<pid_t>(*process), words[1], *waiting, [&](const std::string& text) {
    if (line.due()) line.show(words[2] + ": " + text);
  });
  return Status::done;
}

}  // namespace

const Actions& scripting() {
  static const Actions kActions = {
      {"plan", plan}, {"start", start}, {"finish", finish}, {"state", state}, {"watch", watch}};
  return kActions;
}

Words operands(const cli::Args& args, std::size_t count, bool more, const std::string& what) {
  const Words& given = args.operands();
  const Words words(given.begin() + 1, given.end() - static_cast<std::ptrdiff_t>(args.behind().size()));
  if (words.size() < count || (words.size() > count && !more)) throw UsageError("expected " + given[0] + " " + what);
  return words;
}

std::string place_of(const cli::Args& args) { return registry::place(args.text("registry")); }

registry::Runs read(const cli::Args& args, const std::string& place, std::int64_t& faults) {
  registry::Runs runs = registry::read_runs(place, cli::fault_printer(args.command(), faults));
  if (runs.csv != "runs.csv")
    cli::warn(args.command(), place + "/runs.csv: zs has not written this, so it stays as it is; " +
                                  (runs.csv.empty() ? "and so does zs-runs.csv" : "the runs of zs are in " + runs.csv) +
                                  "; zs-runs import makes its rows runs of zs");
  return runs;
}

std::vector<registry::Run> runs_of(const cli::Args& args, const Words& operands) {
  std::vector<registry::Run> runs;
  for (const std::string& operand : operands)
    runs.push_back(input::run(operand, place_of(args), args.command().name + " of a run"));
  return runs;
}

Status act(const cli::Args& args, const Actions& further) {
  if (args.operands().empty()) return list(args);
  Words names;
  for (const Actions* const actions : {&showing(), &changing(), &scripting(), &further}) {
    const auto action = actions->find(args.operands()[0]);
    if (action != actions->end()) return action->second(args);
    for (const auto& [name, body] : *actions) names.push_back(name);
  }
  if (args.has("output")) return list(args);
  throw UsageError("unknown action '" + args.operands()[0] + "'" + did_you_mean(args.operands()[0], names));
}

}  // namespace zs::experiment
