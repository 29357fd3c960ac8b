// SPDX-License-Identifier: Apache-2.0
// The outcome of a cell, and of all cells.
#include <re2/re2.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "attribute/state.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "compare/verdict.hpp"
#include "experiment/experiment.hpp"
#include "experiment/plan.hpp"
#include "experiment/rerun.hpp"
#include "experiment/start.hpp"
#include "experiment/state.hpp"
#include "input/kind.hpp"
#include "parse/run.hpp"
#include "parse/text.hpp"
#include "probe/answer.hpp"
#include "probe/checks.hpp"
#include "registry/record.hpp"
#include "registry/run.hpp"

namespace zs::experiment {
namespace {

// Compares the probes of an experiment's conditions, each in its run's folder, with the first.

std::string names(const std::vector<std::string>& conditions) {
  return with_and(conditions) + (conditions.size() == 1 ? " is" : " are");
}

/// "probe_comparison", a sentence without its period: which conditions are equal to the first, to the bit or up to
/// rounding, and where others differ; and "probe_verdict", the worst verdict. For complete conditions; empty if fewer
/// than two were probed.
registry::Fields compare_probes(const Experiment& experiment, const std::vector<State>& states) {
  const auto folder = [](const Cell& cell) { return cell.run() + "/probe"; };
  const Cell* first = nullptr;
  std::vector<std::string> exact, rounding, other;
  compare::Verdict worst = compare::Verdict::exact;
  std::string worst_name;
  const auto worsen = [&](compare::Verdict verdict, std::string_view name) {
    if (!worst_name.empty() && verdict <= worst) return;
    worst = verdict, worst_name = name;
  };
  std::size_t consistent = 0;
  const auto alone = [&](const std::string& name, const std::string& probe) {
    try {
      const probe::Answer answer = probe::check(probe);
      consistent += answer.verdict == compare::Verdict::exact;
      if (answer.verdict != compare::Verdict::different) return;
      worsen(answer.verdict, compare::name(answer.verdict));
      other.push_back(name + " is " + std::string(compare::consistency(answer.verdict)) + " in itself (" +
                      answer.sentence() + ")");
    } catch (const std::exception&) {  // the comparison says why it cannot be read
    }
  };
  for (std::size_t i = 0; i < experiment.cells.size(); ++i) {
    const Cell& cell = experiment.cells[i];
    if (cell.run().empty() || states[i].state != RunState::complete) continue;
    if (!input::is(folder(cell), input::Kind::probe)) continue;
    alone(cell.name, folder(cell));
    if (!first) {
      first = &cell;
      continue;
    }
    try {
      const probe::Answer answer = probe::compare(folder(*first), folder(cell), {});
      worsen(answer.verdict, compare::name(answer.verdict));
      if (answer.verdict == compare::Verdict::exact) {
        exact.push_back(cell.name);
      } else if (answer.verdict == compare::Verdict::rounding) {
        rounding.push_back(cell.name);
      } else {
        other.push_back(cell.name + " is " + std::string(compare::name(answer.verdict)) + " (" + answer.sentence() +
                        ")");
      }
    } catch (const std::exception& error) {
      worsen(compare::Verdict::failed, "FAILED");
      other.push_back(cell.name + " is FAILED (" + error.what() + ")");
    }
  }
  if (worst_name.empty()) {
    if (!first || consistent == 0) return {};
    return {{"probe_comparison", "The recording of " + first->name + " is consistent in itself"},
            {"probe_verdict", "consistent"}};
  }
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  for (const std::string& part : other) add(part);
  if (!exact.empty()) add(names(exact) + " equal to the bit");
  if (!rounding.empty()) add(names(rounding) + " equal up to rounding");
  return {{"probe_comparison", "Gradients, updates and parameters, step by step beside " + first->name + "'s: " + text},
          {"probe_verdict", worst_name}};
}

namespace fs = std::filesystem;
using registry::value;

std::string digest_of(const std::string& run) {
  try {
    return metrics_of(run).attribute("state_digest");
  } catch (const std::exception&) {
    return "";
  }
}

/// Lines that mpirun, srun or torchrun add when a rank fails: they do not contain the reason.
bool of_launcher(const std::string& line) {
  static const RE2 kNoise(
      "^((-{20,}|={20,}|\\*{20,}|\\s*)$|srun: |slurmstepd(-\\S+)?: |Primary job  terminated normally|"
      "a non-zero exit code\\. Per user-direction|mpirun (detected|has exited|noticed)|orterun |prterun |"
      "a non-zero status, thus causing the job to be terminated|the job to be terminated\\. The first "
      "process|\\s+Process name: \\[|\\s+Exit code: +\\d+$|"
      "\\[\\S+:\\d+\\] \\d+ more process|[EWI]\\d{4} [0-9:.]+ \\d+ torch/distributed/elastic|"
      "MPI_ABORT was invoked|with errorcode \\d+\\.|NOTE: invoking MPI_ABORT|You may or may not see output from)");
  return RE2::PartialMatch(line, kNoise);
}

}  // namespace

std::string reason_in(const std::string& log) {
  std::string last;
  for (const std::string& line : lines_of(fs::exists(log) ? Input(log).read_all() : "")) {
    const std::string_view text = parse::rank_line(line).text;
    if (text.starts_with("zs-train: ")) return printable(text);  // zs-train has one line for an error
    if (!of_launcher(line)) last = text;
  }
  if (last.empty()) return "";
  parse::Options options;
  options.facts_only = true;
  const metric::Run run = parse::collect(parse::jobs_of({log}), options, [](const Fault&) {}).runs.at(0);
  if (run.attribute("error").empty()) return printable(last);
  const std::string place = run.attribute("error_place");
  return printable(attribute::reason([&](const char* name) { return run.attribute(name); }) +
                   (place.empty() ? "" : " (" + place + ")"));
}

namespace {

/// The cell's row in experiment_log.txt; with its W&B run if any cell has one.
std::string row(const Cell& cell, bool wandb) {
  const auto or_none = [&](const char* field) {
    const std::string text = value(cell.fields, field);
    return text.empty() ? "none" : text;
  };
  const std::string state = or_none("found.state");
  return "| " + cell.name + " | " + (state == "COMPLETE" ? "SUCCESS" : state) + " | " + or_none("exit_code") + " | " +
         or_none("seconds") + " | " + or_none("digest") + " |" + (wandb ? " " + or_none("wandb_run") + " |" : "") +
         "\n";
}

}  // namespace

std::string finish(const std::string& folder, const std::string& name, const registry::Fields& fields) {
  const Lock lock(folder);
  Experiment experiment = Experiment::read(folder);
  const bool known = std::ranges::any_of(experiment.cells, [&](const Cell& cell) { return cell.name == name; });
  if (!known) experiment.cells.push_back({name});
  Cell& cell = experiment.cell(name);
  for (const auto& [key, text] : fields) registry::set(cell.fields, key, text);
  const std::string run = cell.run(), code = value(fields, "exit_code"), log = experiment.log(cell);
  std::string reason = code == "0" || run.empty() ? "" : value(registry::read_record(run), "error");
  const bool bad = code != "0" && code != std::to_string(static_cast<int>(Status::try_again));
  if (bad && reason.empty() && value(fields, "status").empty() && value(fields, "failure").empty())
    reason = reason_in(log);
  if (!reason.empty()) registry::set(cell.fields, "error", reason);
  if (!run.empty()) {
    registry::Fields update = {{"exit_code", code}};
    if (!reason.empty()) update.emplace_back("error", reason);
    if (!value(fields, "status").empty()) update.emplace_back("status", value(fields, "status"));
    run_in(run).update(update);
    registry::set(cell.fields, "run_id", fs::path(run).filename().string());
    if (const std::string digest = digest_of(run); !digest.empty()) registry::set(cell.fields, "digest", digest);
    if (const std::string wandb = value(registry::read_record(run), "wandb_run"); !wandb.empty())
      registry::set(cell.fields, "wandb_run", wandb);
    append(experiment.detailed_log(cell), (fs::exists(log) ? Input(log).read_all() : "") + "\nexit code: " + code +
                                              "\nseconds: " + value(fields, "seconds") + "\n");
  }
  experiment.write();
  const std::string digest = value(cell.fields, "digest"), seconds = value(fields, "seconds");
  if (const std::string failure = value(fields, "failure"); !failure.empty())
    return experiment.label(cell) + ": FAILED: " + failure + "; " + experiment.progress();
  if (value(fields, "status") == registry::status::cancelled)
    return experiment.label(cell) + ": CANCELLED after " + seconds + " s; " + experiment.progress();
  if (code != "0") {
    return experiment.label(cell) + ": FAILED with exit code " + code + " after " + seconds + " s (see " + log +
           "):\n    " + reason + "\n" + experiment.label(cell) + " failed; " + experiment.progress();
  }
  return experiment.label(cell) + ": done in " + seconds + " s" +
         (run.empty() || is_foreign(cell.fields) ? "" : ", state digest " + (digest.empty() ? "unknown" : digest)) +
         "; " + experiment.progress();
}

std::string conclude(const std::string& folder) {
  const Lock lock(folder);
  Experiment experiment = Experiment::read(folder);
  const std::vector<State> states = experiment.judge();
  std::string log, table, bad;
  bool again = false;
  const bool wandb =
      std::ranges::any_of(experiment.cells, [](const Cell& cell) { return !value(cell.fields, "wandb_run").empty(); });
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Cell& cell = experiment.cells[i];
    const std::string code = value(cell.fields, "exit_code"), launch = value(cell.fields, "launch"),
                      error = value(cell.fields, "error");
    log += "Running condition: " + cell.name + "\nCommand: " + launch + (launch.empty() ? "" : " ") +
           value(cell.fields, "command") + "\nCondition " + cell.name +
           (code.empty() ? " has no exit code: " + states[i].basis : " completed with exit code " + code) +
           "\nDetailed log saved: " + cell.name + "_detailed.log\n\n";
    table += row(cell, wandb);
    again = again || states[i].again;
    if (states[i].state == RunState::complete) continue;
    bad += cell.name + ": " + std::string(name(states[i].state)) +
           (code.empty() || code == "0" ? ": " + states[i].basis : " with exit code " + code) +
           (code.empty() || code == "0" || error.empty() ? "" : ": " + error) + "\n";
  }
  const registry::Fields probes = compare_probes(experiment, states);
  for (const auto& [key, text] : probes) registry::set(experiment.fields, key, text);
  if (const std::string said = value(probes, "probe_comparison"); !said.empty()) log += said + "\n\n";
  experiment.write();
  append(experiment.folder + "/experiment_log.txt",
         log + "=== Experiment Summary ===\nEnd time: " + time_text() +
             "\n\n| Condition | Status | Exit code | Seconds | State digest |" + (wandb ? " W&B run |" : "") +
             "\n|-----------|--------|-----------|---------|--------------|" + (wandb ? "---------|" : "") + "\n" +
             table + "\nResults saved to: " + experiment.folder + "\n");
  if (again) bad += "to go on: " + rerun_command(experiment.folder) + "\n";
  return bad;
}

}  // namespace zs::experiment
