// SPDX-License-Identifier: Apache-2.0
// What became of a cell, and of all.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "experiment/rerun.hpp"
#include "experiment/start.hpp"
#include "registry/run.hpp"

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

/// The last five lines of a log, of those that zs-train itself has said of an error if there are any, indented.
std::string last_lines(const std::string& log) {
  std::vector<std::string> all, own;
  std::istringstream lines(fs::exists(log) ? Input(log).read_all() : "");
  for (std::string line; std::getline(lines, line);) {
    all.push_back(line);
    if (line.starts_with("zs-train: ")) own.push_back(line);
  }
  const std::vector<std::string>& chosen = own.empty() ? all : own;
  std::string text;
  for (std::size_t i = chosen.size() - std::min<std::size_t>(5, chosen.size()); i < chosen.size(); ++i)
    text += "\n    " + printable(chosen[i]);
  return text;
}

/// The cell's row in experiment_log.txt; where any cell has a W&B run, with that.
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
        .update({{"exit_code", code}});
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
  if (code != "0") {
    return experiment.label(cell) + ": FAILED with exit code " + code + " after " + seconds + " s (see " + log +
           "):" + last_lines(log) + "\n" + experiment.label(cell) + " failed; " + experiment.progress();
  }
  return experiment.label(cell) + ": done in " + seconds + " s" +
         (run.empty() ? "" : ", state digest " + (digest.empty() ? "unknown" : digest)) + "; " + experiment.progress();
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
