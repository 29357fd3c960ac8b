// SPDX-License-Identifier: Apache-2.0
// The actions of zs-runs that change the registry.
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <set>

#include "base/file.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "cli/run.hpp"
#include "experiment/action.hpp"
#include "experiment/experiment.hpp"
#include "experiment/lease.hpp"
#include "experiment/rerun.hpp"
#include "experiment/state.hpp"
#include "input/named.hpp"
#include "registry/import.hpp"
#include "registry/query.hpp"
#include "registry/runs.hpp"
#include "summary/source.hpp"

namespace zs::experiment {
namespace {

bool is_results(const cli::Args& args, const std::string& operand) {
  return input::named(operand, place_of(args), args.command().name).kind == input::Kind::results;
}

Status update(const cli::Args& args) {
  std::vector<std::vector<std::string>> changes;
  if (args.operands().size() > 1 && args.operands()[1] != "-" && is_results(args, args.operands()[1])) {
    auto words = operands(args, 2, true, "RESULTS NAME=VALUE...");
    const Lock lock(words[0]);
    auto experiment = Experiment::read(words[0]);
    words.erase(words.begin());
    for (const auto& [key, value] : registry::parse_fields(words)) registry::set(experiment.fields, key, value);
    return experiment.write(), Status::done;
  }
  if (args.operands() == std::vector<std::string>{"update", "-"}) {
    for (const std::string& line : lines_of(Input("-").read_all())) changes.push_back(split(line, "\t"));
  } else {
    changes.push_back(operands(args, 2, true, "RUN NAME=VALUE..., or - for lines of such, tabs between"));
  }
  // All are looked at before the first is made.
  std::vector<std::pair<registry::Run, registry::Fields>> updates;
  for (auto& words : changes) {
    const registry::Run run = runs_of(args, {words.front()}).front();
    words.erase(words.begin());
    updates.emplace_back(run, registry::parse_fields(words));
    registry::check(updates.back().second);
  }
  std::set<std::string> touched;
  for (const auto& [run, fields] : updates) {
    run.update(fields);
    touched.insert(run.registry());
  }
  for (const std::string& folder : touched) registry::refresh_soon(folder);
  return Status::done;
}

/// Repeats those of `rows` in the registry `place` that must be repeated. Returns whether all succeed.
bool rerun_in(const cli::Args& args, const std::string& place, const registry::Runs& runs,
              const std::vector<std::size_t>& rows, bool strict, std::int64_t& faults) {
  const auto jobs =
      to_rerun(place, runs, rows, {strict, args.has("any_owner")}, cli::fault_printer(args.command(), faults));
  if (jobs.empty() && faults == 0) std::cerr << "nothing to run again\n";
  bool failed = false;
  for (const auto& job : jobs) {
    const auto command = job.command(args.has("local"));
    std::cerr << printable("cd " + shell_quoted({job.directory}) + " && " + shell_quoted(command)) << "\n";
    if (!args.has("dry_run")) {
      failed |= experiment::rerun(job, command) != 0;
      continue;
    }
    std::string text;
    for (const auto& run : job.runs) text += run + "\n";
    print(text);
  }
  return !failed;
}

Status rerun(const cli::Args& args) {
  std::int64_t faults = 0;
  const auto names = operands(args, 0, true, "RESULTS or [RUN]...");
  if (names.empty() != args.has("failed")) throw UsageError("rerun takes runs, a results folder, or --failed");
  registry::Question question = question_of(args);
  std::map<std::string, std::vector<std::string>> places;  // registries, with the ids of the runs that are named
  const bool experiment = names.size() == 1 && is_results(args, names[0]);
  if (experiment) {
    const auto found = Experiment::read(names[0]);
    question.filters.push_back("experiment=" + found.folder);
    for (const auto& cell : found.cells) places[std::filesystem::path(cell.run()).parent_path().string()];
  } else if (names.empty()) {
    places[place_of(args)];
  } else {
    for (const registry::Run& run : runs_of(args, names)) places[run.registry()].push_back(run.id());
  }
  bool succeeded = true;
  for (const auto& [place, ids] : places) {
    registry::Runs runs = read(args, place, faults);
    auto rows = find_states(place, question, runs);
    if (!ids.empty()) rows.clear();
    for (const std::string& id : ids) rows.push_back(registry::find_run(runs, id));
    succeeded &= rerun_in(args, place, runs, rows, !ids.empty(), faults);
  }
  return succeeded ? verdict(faults) : Status::no;
}

Status add(const cli::Args& args) {
  auto fields = registry::parse_fields(operands(args, 1, true, "NAME=VALUE... (run_name=NAME names it)"));
  const std::string name = registry::value(fields, "run_name");
  std::erase_if(fields, [](const auto& field) { return field.first == "run_name"; });
  print(registry::Run::create(place_of(args), name, fields).id() + "\n");
  return Status::done;
}

Status import_table(const cli::Args& args) {
  std::int64_t faults = 0;
  const std::string csv = operands(args, 1, false, "TABLE")[0];
  const auto sink = cli::fault_printer(args.command(), faults);
  using input::Kind;
  const Kind kind = input::named(csv, "", args.command().name + " import").kind;
  const bool summary = kind == Kind::records || kind == Kind::hdf5;
  const auto imported =
      registry::import_text(place_of(args), csv, summary ? summary::table_of(csv) : Input(csv).read_all(), sink);
  print(std::to_string(imported.made) + (imported.made == 1 ? " run" : " runs") + " imported" +
        (imported.known > 0 ? ", " + std::to_string(imported.known) + " known before" : "") + "\n");
  return verdict(faults);
}

void remove_rows(const cli::Args& args, const std::string& place, const registry::Runs& runs,
                 const std::vector<std::size_t>& rows) {
  for (const std::size_t row : rows) {
    const std::string id = runs.text(row, "run_id");
    if (!args.has("yes")) {
      if (!::isatty(STDIN_FILENO)) throw UsageError("rm asks on a terminal: give --yes to remove without");
      std::cerr << "remove " << id << " (" << printable(runs.text(row, "run_name") + ", " + runs.text(row, "status"))
                << ") with all its files? [y/N] ";
      std::string answer;
      if (!std::getline(std::cin, answer) || (answer != "y" && answer != "yes")) continue;
    }
    if (const Holder holder = experiment::holder(place + "/" + id); holder.here)
      throw Error(id, 0, "is being trained by " + holder.text + " (" + holder.basis + "): end that first");
    registry::remove(place, id);
  }
  registry::refresh_soon(place);
}

Status remove(const cli::Args& args) {
  std::int64_t faults = 0;
  const auto names = operands(args, 1, true, "RUN...");
  std::map<std::string, std::vector<std::string>> places;  // by registry
  for (const registry::Run& run : runs_of(args, names)) places[run.registry()].push_back(run.id());
  std::vector<std::tuple<std::string, registry::Runs, std::vector<std::size_t>>> found;
  for (const auto& [place, ids] : places) {
    auto& [where, runs, rows] = found.emplace_back(place, read(args, place, faults), std::vector<std::size_t>());
    for (const std::string& id : ids) rows.push_back(registry::find_run(runs, id));
    const auto states = add_states(place, rows, runs);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (states[i].state == RunState::running)
        throw Error(ids[i], 0, "is RUNNING (" + states[i].basis + "): end that first");
    }
  }
  // All have been looked at before the first is removed.
  for (const auto& [place, runs, rows] : found) remove_rows(args, place, runs, rows);
  return verdict(faults);
}

Status reindex(const cli::Args& args) {
  std::int64_t faults = 0;
  operands(args, 0, false, "alone");
  registry::tidy(place_of(args));
  print(std::to_string(read(args, place_of(args), faults).size()) + " runs\n");
  return verdict(faults);
}

}  // namespace

const Actions& changing() {
  static const Actions kActions = {{"rerun", rerun},         {"update", update}, {"add", add},
                                   {"import", import_table}, {"rm", remove},     {"reindex", reindex}};
  return kActions;
}

}  // namespace zs::experiment
