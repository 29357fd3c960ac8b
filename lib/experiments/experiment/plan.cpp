// SPDX-License-Identifier: Apache-2.0
#include "experiment/plan.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "attribute/table.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/host.hpp"
#include "base/name.hpp"
#include "base/secret.hpp"
#include "base/words.hpp"
#include "cli/run.hpp"
#include "config/reading.hpp"
#include "experiment/command.hpp"
#include "experiment/foreign.hpp"
#include "registry/record.hpp"
#include "registry/run.hpp"
#include "registry/runs.hpp"

namespace zs::experiment {
namespace {

namespace fs = std::filesystem;
using registry::value;

constexpr const char* kRepetition = "repetition_of";

/// The fields of a cell whose training is planned; of a repetition also what it repeats.
registry::Fields planned_fields(const Cell& cell, registry::Fields fields) {
  if (const std::string repeated = value(cell.fields, kRepetition); !repeated.empty())
    fields.push_back({kRepetition, repeated});
  return fields;
}

config::Config configuration_of(const cli::Command& command, const Cell& cell) {
  if (cell.name.empty()) throw UsageError("a training of the plan has no name");
  try {
    config::Config config = configuration(cli::Args::parse(command, cell.arguments));
    require_effect(config);
    return config;
  } catch (const Error& error) {
    throw Error(cell.name + ": " + error.what());
  }
}

void withdraw(const std::vector<Cell>& cells) {
  for (const Cell& cell : cells) {
    const fs::path path(cell.run());
    if (!path.empty()) registry::remove(path.parent_path().string(), path.filename().string());
  }
}

void check_name(const std::string& name) {
  if (!names_file(name)) throw Error(cannot_name(name, "condition"));
  if (name.ends_with("_detailed"))
    throw Error("condition '" + name + "': NAME_detailed.log is the log of condition NAME: call it something else");
}

void freeze_experiment(const Experiment& experiment) {
  std::vector<std::string> files;
  bool foreign = false;
  for (const Cell& cell : experiment.cells) {
    for (std::string& file : files_of(cell)) files.push_back(std::move(file));
    foreign = foreign || is_foreign(cell.fields);
  }
  std::ranges::sort(files);
  files.erase(std::unique(files.begin(), files.end()), files.end());
  for (const fs::path& entry : entries_of(experiment.folder + "/configs")) {
    if (is_file(entry)) files.push_back(entry.string());
  }
  if (const std::string diff = experiment.folder + "/revision.diff"; fs::exists(diff)) {
    write_file(diff, without_tokens(Input(diff).read_all()));
    files.push_back(diff);
  }
  freeze(experiment.folder + "/frozen.sha256", std::move(files), foreign);
}

/// The same for another program's training: "run_command" is the template of its command, "resume_with" the template of
/// the words that resume it.
std::vector<Cell> plan_foreign(std::vector<Cell> cells, const registry::Fields& fields) {
  const std::string command = value(fields, "run_command"), resume = value(fields, "resume_with");
  for (const Cell& cell : cells) {  // creates no run if one of them is invalid
    const std::string line = fill(command, cell, "").line, resumed = fill_resumed(command, resume, cell, "");
    if (holds_secret(line) || holds_secret(resumed) || without_secrets(cell.arguments) != cell.arguments)
      throw Error(cell.name +
                  ": its command holds a password or a token, and others read the record of a run: export " +
                  "it as a variable, and write $NAME in its place");
  }
  try {
    for (Cell& cell : cells) {
      const config::Config config = foreign_configuration(fill(command, cell, "{run}"), cell);
      // Its output folder belongs to this run only; it is not a registry.
      const std::string place = fs::absolute(registry::place(""));
      const registry::Run run =
          registry::Run::plan(fs::path(place).lexically_normal().string(), config, cell.name, fields);
      cell.fields = planned_fields(cell, {{"run", run.folder()}});
      const Filled filled = fill(command, cell, run.folder());
      for (const auto& [name, content] : filled.files) write_file(run.folder() + "/" + name, content);
      run.update(
          planned_fields(cell, {{"condition", cell.name}, {"command", filled.line}, {"run_command", filled.line}}));
      if (!resume.empty()) run.update({{"resume_with", fill_resumed(command, resume, cell, run.folder())}});
      cell.fields = planned_fields(
          cell, {{"command", filled.line}, {"run_command", filled.line}, {"run", run.folder()}, {"exit_code", ""}});
    }
  } catch (const std::exception&) {
    withdraw(cells);
    throw;
  }
  return cells;
}

}  // namespace

registry::Run run_in(const std::string& folder) {
  return {fs::path(folder).parent_path().string(), fs::path(folder).filename().string()};
}

std::vector<Cell> read_cells(std::string_view lines) {
  std::vector<Cell> cells;
  for (const std::string& line : lines_of(lines)) {
    if (line.empty()) continue;
    try {
      auto words = nlohmann::json::parse(line);
      const auto& head = words.at(0);
      Cell& cell = cells.emplace_back();
      cell.name = (head.is_array() ? head.at(0) : head).get<std::string>();
      if (head.is_array()) cell.fields = {{kRepetition, head.at(1).get<std::string>()}};
      words.erase(0);
      cell.arguments = words.get<std::vector<std::string>>();
    } catch (const nlohmann::json::exception&) {
      throw UsageError("a plan's line is a JSON list, [\"NAME\", \"WORD\", ...], not " + line);
    }
  }
  return cells;
}

std::string cell_line(const std::string& name, const std::vector<std::string>& words,
                      const std::string& repetition_of) {
  nlohmann::json line = words;
  line.insert(line.begin(), repetition_of.empty() ? nlohmann::json(name) : nlohmann::json{name, repetition_of});
  return line.dump() + "\n";
}

std::vector<Cell> plan(std::vector<Cell> cells, const registry::Fields& fields) {
  if (is_foreign(fields)) return plan_foreign(std::move(cells), fields);
  const cli::Command command = train_command();
  std::vector<config::Config> configurations;
  for (const Cell& cell : cells) configurations.push_back(configuration_of(command, cell));
  try {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      Cell& cell = cells[i];
      cell.arguments = without_secrets(cell.arguments);
      std::vector<std::string> words = cell.arguments;
      words.insert(words.begin(), command.name);
      registry::Fields run_fields = planned_fields(cell, fields);
      registry::set(run_fields, "condition", cell.name);
      registry::set(run_fields, "command", shell_quoted(words));
      const std::string place = fs::absolute(registry::place(configurations[i].text("run.output_dir")));
      const registry::Run run =
          registry::Run::plan(fs::path(place).lexically_normal().string(), configurations[i], cell.name, run_fields);
      cell.fields =
          planned_fields(cell, {{"command", value(run_fields, "command")}, {"run", run.folder()}, {"exit_code", ""}});
    }
  } catch (const std::exception&) {
    withdraw(cells);
    throw;
  }
  return cells;
}

bool is_foreign(const registry::Fields& fields) { return !value(fields, "run_command").empty(); }

std::vector<std::string> files_of(const Cell& cell) {
  std::vector<std::string> files;
  std::error_code none;
  if (const std::string config = cell.run() + "/config.yaml"; fs::exists(config)) files.push_back(config);
  const std::string line = value(cell.fields, "run_command");
  if (line.empty()) return files;
  for (const std::string& word : shell_words(line)) {
    const fs::path path = fs::absolute(word, none);
    if (!none && fs::is_regular_file(path, none) && !fs::is_symlink(path, none) && !word.starts_with("/usr/") &&
        !word.starts_with("/bin/"))
      files.push_back(path.lexically_normal().string());
  }
  return files;
}

bool of_runs(std::string_view field) {
  const attribute::Attribute* const row = attribute::find(field);
  return row && row->per_run;
}

Experiment plan_experiment(std::vector<Cell> cells, const registry::Fields& fields) {
  for (const Cell& cell : cells) check_name(cell.name);
  registry::Fields experiment_fields, common;
  for (const auto& field : fields) (of_runs(field.first) ? common : experiment_fields).push_back(field);
  const std::string& folder = value(fields, "experiment");
  if (!fs::is_directory(folder)) throw Error(folder, 0, "there is no such results folder to plan the runs in");
  Experiment experiment{fs::canonical(folder).string()};
  experiment.fields = {{"experiment_date", time_text()}, {"experiment", value(experiment_fields, "title")}};
  if (!cells.empty()) {
    registry::set(experiment.fields, "host", host_name());
    registry::set(experiment.fields, "version", "zs-train " + std::string(cli::version()));
  }
  for (const auto& [key, text] : experiment_fields) {
    if (key != "title") registry::set(experiment.fields, key, text);
  }
  if (!value(common, "slurm_job_id").empty())
    registry::set(experiment.fields, "slurm_job_id", value(common, "slurm_job_id"));
  registry::set(common, "experiment", experiment.folder);
  for (const char* const field : {"run_command", "resume_with"}) {  // each run gets its own line of it
    if (const std::string text = value(experiment_fields, field); !cells.empty() && !text.empty())
      registry::set(common, field, text);
  }
  experiment.cells = plan(std::move(cells), common);
  try {
    experiment.write();
    if (!experiment.cells.empty()) freeze_experiment(experiment);
  } catch (const std::exception&) {
    withdraw(experiment.cells);
    throw;
  }
  return experiment;
}

std::vector<Cell> plan_again(const std::string& folder, bool unfinished, const std::vector<std::string>* names,
                             const registry::Fields& fields) {
  registry::Fields planned = {{"status", registry::status::planned},
                              {"exit_code", ""},
                              {"error", ""},
                              {"slurm_job_id", ""},
                              {"slurm_array_job_id", ""},
                              {"slurm_array_task_id", ""}};
  for (const auto& [key, text] : fields) registry::set(planned, key, text);
  if (!Experiment::at(folder)) {
    require_frozen(folder + "/frozen.sha256");
    run_in(folder).update(planned);
    return {};
  }
  // Another call may just be at it: it marks what it takes before it lets go of the lock.
  const Lock lock(folder);
  Experiment experiment = Experiment::read(folder);
  if (experiment.cells.empty()) throw Error(folder + "/metadata.json", 0, "plans no training");
  const std::vector<State> states = experiment.judge();
  std::vector<Cell*> chosen;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const RunState state = states[i].state;
    Cell& cell = experiment.cells[i];
    const bool again = unfinished ? state != RunState::complete && state != RunState::diverged : states[i].again;
    const bool named = !names || std::ranges::find(*names, cell.name) != names->end();
    if (again && named && !registry::read_record(cell.run()).empty()) chosen.push_back(&cell);
  }
  if (!chosen.empty()) require_frozen(experiment.folder + "/frozen.sha256");
  std::vector<Cell> taken;
  for (Cell* const cell : chosen) {
    run_in(cell->run()).update(planned);
    registry::refresh_soon(fs::path(cell->run()).parent_path().string());
    registry::Fields kept =
        planned_fields(*cell, {{"command", value(cell->fields, "command")}, {"run", cell->run()}, {"exit_code", ""}});
    if (is_foreign(cell->fields)) registry::set(kept, "run_command", value(cell->fields, "run_command"));
    cell->fields = std::move(kept);
    taken.push_back(*cell);
  }
  experiment.write();
  return taken;
}

}  // namespace zs::experiment
