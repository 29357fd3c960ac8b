// SPDX-License-Identifier: Apache-2.0
// The outcome of a cell, and of all cells.
#include <re2/re2.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "experiment/plan.hpp"
#include "experiment/probes.hpp"
#include "experiment/rerun.hpp"
#include "experiment/start.hpp"
#include "parse/exception.hpp"
#include "registry/run.hpp"
#include "registry/status.hpp"

namespace zs::experiment {
namespace {

namespace fs = std::filesystem;
using registry::value;

std::string digest_of(const std::string& run) {
  try {
    return metrics_of(run).attribute("state_digest");
  } catch (const std::exception&) {
    return "";
  }
}

/// Lines that mpirun, srun or torchrun add when a rank fails: they tell that one did, not why.
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

/// The place of the first Python traceback in the lines, and its exception; empty if there is none. Lines of other
/// ranks may be between its lines.
std::vector<std::string> traceback(const std::vector<std::string>& lines) {
  static const RE2 kPlace("^\\s*File \".*\", line \\d+");
  const auto begin = std::find_if(lines.begin(), lines.end(), parse::begins_traceback);
  std::vector<std::string> found;
  for (auto line = begin; line != lines.end(); ++line) {
    if (RE2::PartialMatch(*line, kPlace)) found = {*line};
    if (found.empty() || !parse::is_exception(*line)) continue;
    // An exception raised while another was handled is the one that ended the rank.
    const auto next = std::find_if(line + 1, lines.end(), [](const std::string& text) { return !text.empty(); });
    if (next != lines.end() && parse::is_chained(*next)) continue;
    found.push_back(*line);
    return found;
  }
  return {};
}

/// Why a training failed, by its log, indented: what zs-train itself says of an error, else the first exception of
/// Python, else the last five lines that are not the launcher's.
std::string why(const std::string& log) {
  std::vector<std::string> all, own, others;
  std::istringstream lines(fs::exists(log) ? Input(log).read_all() : "");
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    line = std::string(parse::rank_line(line).text);
    all.push_back(line);
    if (line.starts_with("zs-train: ")) own.push_back(line);
    if (!of_launcher(line)) others.push_back(line);
  }
  const std::vector<std::string> raised = traceback(all);
  const std::vector<std::string>& chosen = !own.empty()      ? own
                                           : !raised.empty() ? raised
                                           : others.empty()  ? all
                                                             : others;
  std::string text;
  for (std::size_t i = chosen.size() - std::min<std::size_t>(5, chosen.size()); i < chosen.size(); ++i)
    text += "\n    " + printable(chosen[i]);
  return text;
}

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
  const bool known = std::any_of(experiment.cells.begin(), experiment.cells.end(),
                                 [&](const Cell& cell) { return cell.name == name; });
  if (!known) experiment.cells.push_back({name});
  Cell& cell = experiment.cell(name);
  for (const auto& [key, text] : fields) registry::set(cell.fields, key, text);
  const std::string run = cell.run(), code = value(fields, "exit_code"), log = experiment.log(cell);
  if (!run.empty()) {
    registry::Run(fs::path(run).parent_path().string(), fs::path(run).filename().string())
        .update(value(fields, "status").empty()
                    ? registry::Fields{{"exit_code", code}}
                    : registry::Fields{{"exit_code", code}, {"status", value(fields, "status")}});
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
           "):" + why(log) + "\n" + experiment.label(cell) + " failed; " + experiment.progress();
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
  const bool wandb = std::any_of(experiment.cells.begin(), experiment.cells.end(),
                                 [](const Cell& cell) { return !value(cell.fields, "wandb_run").empty(); });
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Cell& cell = experiment.cells[i];
    const std::string code = value(cell.fields, "exit_code"), launch = value(cell.fields, "launch");
    log += "Running condition: " + cell.name + "\nCommand: " + launch + (launch.empty() ? "" : " ") +
           value(cell.fields, "command") + "\nCondition " + cell.name +
           (code.empty() ? " has no exit code: " + states[i].basis : " completed with exit code " + code) +
           "\nDetailed log saved: " + cell.name + "_detailed.log\n\n";
    table += row(cell, wandb);
    again = again || states[i].again;
    if (states[i].state == RunState::complete) continue;
    bad += cell.name + ": " + std::string(name(states[i].state)) +
           (code.empty() || code == "0" ? ": " + states[i].basis : " with exit code " + code) + "\n";
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
