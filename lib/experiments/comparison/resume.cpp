// SPDX-License-Identifier: Apache-2.0
#include "comparison/resume.hpp"

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/process.hpp"
#include "base/words.hpp"
#include "checkpoints/folders.hpp"
#include "checkpoints/read.hpp"
#include "compare/verdict.hpp"
#include "experiment/foreign.hpp"
#include "experiment/start.hpp"
#include "input/kind.hpp"
#include "parse/run.hpp"
#include "state/diff.hpp"

namespace zs::comparison {
namespace {

namespace fs = std::filesystem;

class Trainings {
 public:
  Trainings(const ResumeTest& test, const std::function<void(const std::string&)>& tell) : test_(test), tell_(tell) {
    if (test.command.find("{steps}") == std::string::npos)
      throw UsageError("--resume: the command needs {steps}, the step after which it ends: --max_steps {steps}");
    if (test.with.empty() && test.resumed.empty())
      throw UsageError("--resume needs --resume_with ARGS, by which the training goes on: '--resume {checkpoint}'");
  }

  /// Trains without a stop, then with one.
  void run() {
    train("whole", "undisturbed", test_.total, filled(test_.command, "undisturbed", test_.total));
    train("first", "stopped", test_.at, filled(test_.command, "stopped", test_.at));
    std::string line = resumed_line();
    constexpr std::string_view kCheckpoint = "{checkpoint}";
    if (line.find(kCheckpoint) != std::string::npos) {
      checkpoint_ = checkpoints::newest_whole(folder("stopped"));
      if (checkpoint_.empty())
        throw Error(
            folder("stopped"), 0,
            "has no whole checkpoint after step " + to_text(test_.at) +
                ": the training has to write one below {run}, as a folder or file whose name ends with its step");
      for (std::size_t at; (at = line.find(kCheckpoint)) != std::string::npos;)
        line.replace(at, kCheckpoint.size(), shell_quoted({checkpoint_}));
    }
    train("rest", "stopped", test_.total, line);
  }

  const std::string& checkpoint() const { return checkpoint_; }
  std::string folder(const std::string& training) const { return test_.folder + "/" + training; }
  std::string probe(const std::string& part) const { return test_.folder + "/" + part + ".probe"; }
  /// Another command may train on other ranks: its probe is another one, of the steps that it made.
  std::string resumed_probe() const { return probe(test_.resumed.empty() ? "stopped" : "resumed"); }

 private:
  experiment::Cell cell(const std::string& probe, std::int64_t steps) const {
    return {"resume",
            {"--steps", to_text(steps), "--total", to_text(test_.total), "--at", to_text(test_.at), "--probe", probe}};
  }
  std::string filled(const std::string& command, const std::string& training, std::int64_t steps) const {
    return experiment::fill(command, cell(probe(training), steps), folder(training)).line;
  }
  std::string resumed_line() const {
    const experiment::Cell rest = cell(resumed_probe(), test_.total);
    return experiment::fill_resumed(test_.resumed.empty() ? test_.command : test_.resumed, test_.with, rest,
                                    folder("stopped"));
  }

  void train(const std::string& part, const std::string& training, std::int64_t steps, const std::string& line) const {
    fs::create_directories(folder(training));
    const std::string log = test_.folder + "/" + part + ".log";
    tell_(part + ": to step " + to_text(steps) + ", log " + log);
    const bool resumes = part == "rest";
    const std::string recorded = resumes ? resumed_probe() : probe(training);
    const std::string script = "exec >" + shell_quoted({log}) +
                               " 2>&1\nexport ZS_PROBE_EVERY=1 ZS_PROBE=" + shell_quoted({recorded}) +
                               (resumes ? " ZS_PROBE_STEPS_DONE=" + to_text(test_.at) : "") + "\n" + line;
    const Ended ended = zs::run({{"bash", "-c", script}});
    if (ended.status != 0) {
      const std::string error = experiment::reason_in(log);
      throw Error(
          log, 0,
          "the training ended with status " + std::to_string(ended.status) + (error.empty() ? "" : ": " + error));
    }
    if (!input::is(recorded, input::Kind::probe))
      throw Error(recorded, 0,
                  "is no probe: start the training by `python -m zs_probe`, or give zs-train --probe {probe}");
  }

  const ResumeTest& test_;
  const std::function<void(const std::string&)>& tell_;
  std::string checkpoint_;
};

/// The verdict on the parts of two checkpoints that rounding does not change: all but tensors and random states. The
/// trainings are equal up to rounding, so weights and moments have other bits.
compare::Verdict beside_tensors(const state::Difference& found) {
  compare::Verdict worst = compare::Verdict::exact;
  for (const state::Compared& kind : found.kinds) {
    if (kind.kind == "random") continue;
    if (kind.only_a + kind.only_b > 0) worst = std::max(worst, compare::Verdict::inconclusive);
    if (!kind.tensors && kind.differing > 0) worst = compare::Verdict::different;
  }
  return worst;
}

/// The checkpoints that both have left, if they are of one step.
void compare_checkpoints(const std::string& a, const std::string& b, const compare::Tolerance& tolerance,
                         Answer& answer) {
  const std::string left = checkpoints::newest_whole(a), right = checkpoints::newest_whole(b);
  if (left.empty() || right.empty() || fs::path(left).filename() != fs::path(right).filename()) return;
  const checkpoints::State mine = checkpoints::read(left), theirs = checkpoints::read(right);
  if (mine.step != theirs.step) return;
  const Answer found = compare_states(left, right, tolerance);
  answer.lines.emplace_back("checkpoints", std::string(compare::name(found.verdict)) + ": " + left + " and " + right);
  if (!compare::equal(found.verdict)) add(answer, "checkpoint", found);
  if (compare::equal(answer.verdict)) answer.verdict.worsen(found.verdict);
  if (answer.verdict == compare::Verdict::rounding)
    answer.verdict.worsen(beside_tensors(state::diff(mine, theirs, tolerance)));
}

/// One sentence on the first thing that was lost or changed.
std::string lost(const ResumeTest& test, const Answer& answer) {
  const std::string headline = compare::line_of(answer.lines, {"headline"});
  const std::int64_t step = parse_int(compare::line_of(answer.lines, {"step"})).value_or(0);
  if (step > 0 && step <= test.at) {
    const bool rate = compare::line_of(answer.lines, {"stage"}).starts_with("learning rate");
    return "nothing is said of the resume: the two trainings part before it, at step " + to_text(step) + ": " +
           (rate ? "the learning rate depends on {steps}; a schedule has to be {total} steps long in each training"
                 : "the training does not repeat itself");
  }
  if (!headline.empty()) return headline;
  if (answer.verdict == compare::Verdict::rounding) return "nothing beyond rounding";
  if (compare::equal(answer.verdict)) return "nothing";
  const auto what = std::ranges::find(answer.lines, "checkpoint what", &std::pair<std::string, std::string>::first);
  if (answer.lines.end() - what > 2)  // followed by both values
    return what->second + " is " + what[2].second + " for " + what[1].second + " in the checkpoints";
  const std::string checkpoints = compare::line_of(answer.lines, {"checkpoints"});
  return checkpoints.empty() ? compare::line_of(answer.lines, {"failure"}) : "in the checkpoints: " + checkpoints;
}

}  // namespace

Answer test_resume(const ResumeTest& test, const compare::Tolerance& tolerance,
                   const std::function<void(const std::string&)>& tell) {
  if (test.at < 1 || test.at >= test.total)
    throw UsageError("--resume: expected 1 <= --at < --steps, not " + to_text(test.at) + " and " + to_text(test.total));
  Trainings trainings(test, tell);
  trainings.run();
  Answer answer = compare_recordings(trainings.probe("undisturbed"), trainings.resumed_probe(), tolerance,
                                     test.resumed.empty() ? 0 : test.at);
  compare_checkpoints(trainings.folder("undisturbed"), trainings.folder("stopped"), tolerance, answer);
  std::vector<std::pair<std::string, std::string>> lines = {
      {"verdict", std::string(compare::name(answer.verdict))},
      {"lost", lost(test, answer)},
      {"resumed", "after step " + to_text(test.at) + " of " + to_text(test.total) +
                      (trainings.checkpoint().empty() ? "" : ", from " + trainings.checkpoint())}};
  for (auto& line : answer.lines) {
    if (line.first != "verdict") lines.push_back(std::move(line));
  }
  answer.lines = std::move(lines);
  return answer;
}

}  // namespace zs::comparison
