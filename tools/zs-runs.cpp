// SPDX-License-Identifier: Apache-2.0
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "attribute/difference.hpp"
#include "base/file.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "base/shell.hpp"
#include "base/text.hpp"
#include "cli/run.hpp"
#include "cli/terminal.hpp"
#include "compare/records.hpp"
#include "experiment/actions.hpp"
#include "experiment/experiment.hpp"
#include "experiment/lease.hpp"
#include "experiment/page.hpp"
#include "experiment/rerun.hpp"
#include "experiment/state.hpp"
#include "input/named.hpp"
#include "metric/table.hpp"
#include "pretrained/export.hpp"
#include "registry/import.hpp"
#include "registry/index.hpp"
#include "registry/listing.hpp"
#include "registry/openmetrics.hpp"
#include "registry/query.hpp"
#include "registry/run.hpp"
#include "registry/statistics.hpp"
#include "summary/choice.hpp"

namespace {

using zs::Sheet;
using zs::Status;
using zs::cli::Args;
using zs::registry::Runs;

const zs::cli::Command kCommand = {
    "zs-runs",
    "List, filter, sort, show, compare and update runs",
    "[LOG|DIR...|show RUN|diff RUN RUN|rerun [RUN]...|update RUN NAME=VALUE...|add NAME=VALUE...|import TABLE|export "
    "RUN DIR|rm "
    "RUN...|reindex|"
    "plan [NAME=VALUE]... [-- NAME WORD...]|start RUN -- LAUNCHER...|"
    "finish RESULTS CELL NAME=VALUE...|state RESULTS|watch PROCESS LOG CELL WAITING]",
    {
        {'r', "registry", "DIR", "folder of the runs [$ZS_REGISTRY, else saved_models]"},
        {'f',
         "filter",
         "TEST",
         "only runs that pass each test: COLUMN=VALUE, or != < <= > >= ~ !~ in place of =",
         "",
         {},
         true},
        {0, "sweep", "NAME", "only runs of that sweep"},
        {0, "filter_sweep", "NAME", "same as --sweep"},
        {0, "or", "", "runs that pass any of the tests"},
        {'s', "sort_by", "COLUMN", "sort by a column"},
        {'d', "descending", "", "the largest first"},
        {0, "show", "COLUMN", "only these columns, in this order", "", {}, true},
        {0, "hide", "COLUMN", "all but these columns", "", {}, true},
        {'n', "limit", "N", "at most N runs"},
        {'l', "list_columns", "", "list all columns"},
        {0, "statistics", "",
         "add statistics of the columns below the table: mean, deviation and quartiles of numbers, counts of words; "
         "other formats have only these"},
        {0, "status", "", "determine the state of each run from its metrics, Slurm's queue and its process"},
        {0, "failed", "", "with rerun: all runs that failed or are missing"},
        {0, "local", "", "with rerun: train here, one after another, not by Slurm"},
        {0, "any_owner", "",
         "with rerun, plan, start: also runs of other users; their commands then run under your account"},
        {0,
         "again",
         "WHICH",
         "with plan: plan again what failed or is missing, or everything that is unfinished",
         "",
         {"failed", "unfinished"}},
        {0, "dry_run", "", "with rerun: only list the runs, and show the commands"},
        {0,
         "format",
         "NAME",
         "form of the output; default: table on a terminal, tsv elsewhere",
         "",
         {"table", "tsv", "csv", "json", "openmetrics"}},
        {'o', "output", "FILE", "write a page of the runs, with their curves, for a browser: FILE.html"},
        {0, "watch", "SECONDS", "with --output: write it anew every so many seconds"},
        {0, "checkpoint", "NAME", "with export: a step, checkpoint_STEP, or final_checkpoint", "final_checkpoint"},
        {'y', "yes", "", "remove without asking"},
        {0, "patterns", "FILE",
         "with watch: file of patterns for other trainers' logs, see zs-parse(1) [~/.config/zs/patterns]"},
    },
    {{1, "the runs differ (diff), or the record of a run is damaged"}, {125, "start: nothing was started"}},
    {"zs-runs --filter model.name=gpt2 --sort_by final_valid_loss", "zs-runs --status", "zs-runs show baseline"}};

std::string registry(const Args& args) { return zs::registry::place(args.text("registry")); }

/// Reads the registry; damaged records are printed and counted in `faults`.
Runs read(const std::string& place, std::int64_t& faults, bool anew = false) {
  Runs runs = zs::registry::read_runs(place, zs::cli::fault_printer(kCommand, faults), anew);
  if (runs.csv != "runs.csv")
    zs::cli::warn(kCommand, place + "/runs.csv: zs has not written this, so it stays as it is; " +
                                (runs.csv.empty() ? "and so does zs-runs.csv" : "the runs of zs are in " + runs.csv) +
                                "; zs-runs import makes its rows runs of zs");
  return runs;
}

Status verdict(std::int64_t faults) { return faults ? Status::no : Status::done; }

/// The id of a run that the user names by its id, its name or its folder.
std::string id_of(const Args& args, const std::string& name) {
  return zs::input::run_id(name, registry(args), kCommand.name);
}

std::string format(const Args& args) {
  if (args.has("format")) return args.text("format");
  return ::isatty(STDOUT_FILENO) ? "table" : "tsv";
}

/// Prints a sheet. In a table, `note` makes it as wide as the line, and tells how many columns that left out; without,
/// every column stays.
void print_sheet(const Args& args, const Sheet& sheet, const std::function<std::string(std::size_t)>& note = {}) {
  const std::string how = format(args);
  if (how == "tsv") return zs::print(zs::to_tsv(sheet));
  if (how == "csv") return zs::print(zs::to_csv(sheet));
  if (how == "json") return zs::print(zs::to_json(sheet));
  if (how == "openmetrics") return zs::print(zs::registry::to_openmetrics(sheet));
  std::size_t left_out = 0;
  const Sheet fit = zs::fitted(sheet, note ? zs::cli::line_width() : 0, left_out);
  zs::print(zs::aligned(fit) + (note ? note(left_out) : ""));
}

/// Below a table: what its columns hold, in as many tables as the line needs.
void print_statistics(const Sheet& whole) {
  std::size_t none = 0;
  Sheet fit = zs::fitted(whole, 0, none);
  for (std::size_t row = 0; row < fit.rows.size(); ++row) fit.rows[row].back() = whole.rows[row].back();  // in full
  for (std::size_t i = fit.header.size(); i-- > 0;) {
    if (std::any_of(fit.rows.begin(), fit.rows.end(), [i](const auto& row) { return !row[i].empty(); })) continue;
    fit.header.erase(fit.header.begin() + static_cast<std::ptrdiff_t>(i));
    for (auto& row : fit.rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(i));
  }
  zs::print("\n" + zs::aligned(fit, zs::cli::line_width()));
}

/// The question that the options ask.
zs::registry::Question question_of(const Args& args) {
  zs::registry::Question question{args.all("filter"),   args.has("or"),         {},
                                  args.text("sort_by"), args.has("descending"), {},
                                  args.all("show"),     args.all("hide"),       format(args) == "table"};
  for (const char* const name : {"filter_sweep", "sweep"}) {
    if (args.has(name)) question.sweep = args.text(name);
  }
  if (args.has("limit")) question.limit = static_cast<std::size_t>(args.integer("limit", 0));
  return question;
}

/// --output: the runs as a page, once or until a signal ends it.
Status write_page(const Args& args) {
  std::int64_t faults = 0;
  const int every = args.has("watch") ? static_cast<int>(args.integer("watch", 1, 86400)) : 0;
  zs::experiment::write_page(registry(args), args.operands(), question_of(args), {args.text("output"), every},
                             kCommand.name + " " + zs::cli::version(), zs::cli::fault_printer(kCommand, faults));
  return verdict(faults);
}

Status list(const Args& args) {
  if (args.has("output")) return write_page(args);
  if (args.has("watch")) throw zs::UsageError("--watch writes a page anew: name it with --output FILE.html");
  std::int64_t faults = 0;
  if (args.has("statistics") && (args.has("list_columns") || format(args) == "openmetrics"))
    throw zs::UsageError(std::string("--statistics is of a table of runs: leave out ") +
                         (args.has("list_columns") ? "--list_columns" : "--format openmetrics"));
  Runs runs = read(registry(args), faults);
  zs::registry::Question question = question_of(args);
  const std::size_t known = runs.columns.size();
  const bool states = args.has("status") || zs::experiment::asks_for_states(question, runs);
  if (states) zs::experiment::find_states(registry(args), question, runs);
  if (args.has("list_columns")) return print_sheet(args, zs::registry::column_listing(runs)), verdict(faults);
  const auto answer = zs::registry::ask(runs, question);
  // People are told what has become of a run, not what it said last.
  if (question.telling && !states && question.show.empty())
    zs::experiment::tell_states(registry(args), answer.rows, runs);
  Sheet sheet = zs::registry::listing(runs, answer.rows, answer.columns);
  const Sheet whole = args.has("statistics") ? zs::registry::statistics(sheet) : Sheet{};
  if (args.has("statistics") && format(args) != "table") return print_sheet(args, whole), verdict(faults);
  for (std::string& name : sheet.header) {
    if (question.telling && name == answer.sorted) name += question.descending ? " ▼" : " ▲";
  }
  print_sheet(args, sheet, [&](std::size_t left_out) {
    const bool part = answer.rows.size() < answer.matching;
    const std::string note = std::to_string(answer.rows.size()) +
                             (part ? " of " + std::to_string(answer.matching) : "") +
                             (answer.matching == 1 ? " run" : " runs");
    const std::size_t more = known - std::min(known, answer.columns.size() - left_out);
    const std::string closed = std::to_string(runs.closed);
    return note + (runs.closed ? ", " + closed + " more that others keep to themselves" : "") +
           (more ? ", " + std::to_string(more) + (more == 1 ? " more column" : " more columns") +
                       " (--list_columns, --show)"
                 : "") +
           "\n";
  });
  if (!whole.rows.empty()) print_statistics(whole);
  return verdict(faults);
}

/// The operands after the action, which must be `count`, or at least that if `more`.
std::vector<std::string> operands(const Args& args, std::size_t count, bool more, const std::string& what) {
  std::vector<std::string> rest(args.operands().begin() + 1, args.operands().end());
  if (rest.size() < count || (rest.size() > count && !more))
    throw zs::UsageError("expected " + args.operands()[0] + " " + what);
  return rest;
}

/// An experiment: its fields, and how each of its cells stands.
Status show_experiment(const Args& args, const std::string& folder) {
  auto experiment = zs::experiment::Experiment::read(folder);
  experiment.judge();
  Sheet sheet{{"topic", "field", "value"}, {}};
  for (const auto& [key, value] : experiment.fields) sheet.rows.push_back({"experiment", key, value});
  for (const auto& cell : experiment.cells) {
    const std::string state = zs::registry::value(cell.fields, "found.state");
    sheet.rows.push_back({"condition", cell.name, state + ": " + zs::registry::value(cell.fields, "found.basis")});
  }
  print_sheet(args, sheet);
  return Status::done;
}

Status show(const Args& args) {
  std::int64_t faults = 0;
  const auto names = operands(args, 1, false, "RUN");
  if (zs::experiment::Experiment::at(names[0])) return show_experiment(args, names[0]);
  const Runs runs = read(registry(args), faults);
  Sheet sheet = zs::registry::run_listing(runs, zs::registry::find_run(runs, id_of(args, names[0])));
  if (format(args) == "table") {  // values in full
    for (auto& cells : sheet.rows) cells[2] = zs::printable(zs::backslashed(cells[2]));
    return zs::print(zs::aligned(sheet)), verdict(faults);
  }
  if (format(args) != "json") return print_sheet(args, sheet), verdict(faults);
  std::vector<std::string> keys, values;
  for (const auto& row : sheet.rows) keys.push_back(row[1]), values.push_back(row[2]);
  zs::print(zs::to_json(keys, values));
  return verdict(faults);
}

/// The metrics of the run in a folder, if it has any.
std::optional<zs::metric::Run> metrics_in(const std::string& folder) {
  if (!std::filesystem::exists(folder + "/metrics.h5")) return {};
  return zs::experiment::metrics_of(folder);
}

/// Adds where the records part and what keeps them from being compared.
void add_first_difference(const zs::metric::Run& x, const zs::metric::Run& y, Sheet& sheet) {
  const auto found = zs::compare::records({sheet.header[2], &x.records}, {sheet.header[3], &y.records}, {});
  if (found.first) {
    const zs::compare::Pair& first = *found.first;
    sheet.rows.push_back(
        {"metric", first.column + " at " + to_text(first.place) + ", the first to differ", first.a, first.b});
  }
  for (const auto& reason : found.reasons) sheet.rows.push_back({"metric", reason.text, "", ""});
  for (const auto& name : found.only_a) sheet.rows.push_back({"metric", name, "recorded", ""});
  for (const auto& name : found.only_b) sheet.rows.push_back({"metric", name, "", "recorded"});
}

Status diff(const Args& args) {
  std::int64_t faults = 0;
  const auto names = operands(args, 2, false, "RUN RUN");
  const Runs runs = read(registry(args), faults);
  const std::size_t a = zs::registry::find_run(runs, id_of(args, names[0])),
                    b = zs::registry::find_run(runs, id_of(args, names[1]));
  Sheet sheet = zs::registry::difference(runs, a, b);
  const auto x = metrics_in(registry(args) + "/" + sheet.header[2]);
  const auto y = metrics_in(registry(args) + "/" + sheet.header[3]);
  if (x && y) add_first_difference(*x, *y, sheet);
  const bool differ = !sheet.rows.empty();
  const auto facts = [&](std::size_t row, const std::optional<zs::metric::Run>& metrics) {
    zs::attribute::Facts all = metrics ? metrics->attributes : zs::attribute::Facts();
    for (const auto& [name, value] : runs.fields(row)) all.emplace(name, value);
    return all;
  };
  const std::string bits = zs::attribute::verdict_on_bits(facts(a, x), facts(b, y));
  const bool table = format(args) == "table";  // which has room for a sentence below it alone
  if (!bits.empty() && !table) sheet.rows.push_back({"verdict", "bits", bits, ""});
  print_sheet(args, sheet);
  if (!bits.empty() && table) zs::print(bits + "\n");
  return differ ? Status::no : verdict(faults);
}

/// The run that an operand of update means: by its folder, or as in find_run.
zs::registry::Run run_named(const Args& args, const std::string& name, std::int64_t& faults) {
  if (name.find('/') != std::string::npos) {
    const std::filesystem::path folder(name);
    if (!zs::registry::registered(folder.parent_path().string(), folder.filename().string()))
      throw zs::Error(name, 0, "is not the folder of a run");
    return {folder.parent_path().string(), folder.filename().string()};
  }
  if (zs::registry::registered(registry(args), name)) return {registry(args), name};
  const Runs runs = read(registry(args), faults);
  return {registry(args), runs.text(zs::registry::find_run(runs, name), "run_id")};
}

Status update(const Args& args) {
  std::int64_t faults = 0;
  std::vector<std::vector<std::string>> changes;
  if (args.operands().size() > 1 && zs::experiment::Experiment::at(args.operands()[1])) {
    auto words = operands(args, 2, true, "RESULTS NAME=VALUE...");
    const zs::experiment::Lock lock(words[0]);
    auto experiment = zs::experiment::Experiment::read(words[0]);
    words.erase(words.begin());
    for (const auto& [key, value] : zs::registry::parse_fields(words)) zs::registry::set(experiment.fields, key, value);
    return experiment.write(), Status::done;
  }
  if (args.operands() == std::vector<std::string>{"update", "-"}) {
    std::istringstream lines(zs::Input("-").read_all());
    for (std::string line; std::getline(lines, line);) {
      auto& words = changes.emplace_back(1);
      for (const char c : line) c == '\t' ? words.emplace_back() : words.back() += c;
    }
  } else {
    changes.push_back(operands(args, 2, true, "RUN NAME=VALUE..., or - for lines of such, tabs between"));
  }
  // All are looked at before the first is made.
  std::vector<std::pair<zs::registry::Run, zs::registry::Fields>> updates;
  for (auto& words : changes) {
    const auto run = run_named(args, words.front(), faults);
    words.erase(words.begin());
    updates.emplace_back(run, zs::registry::parse_fields(words));
    zs::registry::check(updates.back().second);
  }
  std::set<std::string> touched;
  for (const auto& [run, fields] : updates) {
    run.update(fields);
    touched.insert(std::filesystem::path(run.folder()).parent_path().string());
  }
  for (const std::string& folder : touched) zs::registry::refresh_soon(folder);
  return verdict(faults);
}

/// Runs again what of `rows` in the registry `place` has to be. Whether that succeeds.
bool rerun_in(const Args& args, const std::string& place, const Runs& runs, const std::vector<std::size_t>& rows,
              bool strict, std::int64_t& faults) {
  const auto jobs = zs::experiment::to_rerun(place, runs, rows, {strict, args.has("any_owner")},
                                             zs::cli::fault_printer(kCommand, faults));
  if (jobs.empty() && faults == 0) std::cerr << "nothing to run again\n";
  bool failed = false;
  for (const auto& job : jobs) {
    const auto command = job.command(args.has("local"));
    std::cerr << zs::printable("cd " + zs::shell_quoted({job.directory}) + " && " + zs::shell_quoted(command)) << "\n";
    if (!args.has("dry_run")) {
      failed |= zs::experiment::rerun(job, command) != 0;
      continue;
    }
    std::string text;
    for (const auto& run : job.runs) text += run + "\n";
    zs::print(text);
  }
  return !failed;
}

Status rerun(const Args& args) {
  std::int64_t faults = 0;
  const auto names = operands(args, 0, true, "RESULTS or [RUN]...");
  if (names.empty() != args.has("failed")) throw zs::UsageError("rerun takes runs, a results folder, or --failed");
  const bool experiment = names.size() == 1 && zs::experiment::Experiment::at(names[0]);
  zs::registry::Question question = question_of(args);
  std::set<std::string> places = {registry(args)};
  if (experiment) {
    const auto found = zs::experiment::Experiment::read(names[0]);
    question.filters.push_back("experiment=" + found.folder);
    places.clear();
    for (const auto& cell : found.cells) places.insert(std::filesystem::path(cell.run()).parent_path().string());
  }
  bool succeeded = true;
  for (const std::string& place : places) {
    Runs runs = read(place, faults);
    auto rows = zs::experiment::find_states(place, question, runs);
    if (!names.empty() && !experiment) {
      rows.clear();
      for (const std::string& name : names) rows.push_back(zs::registry::find_run(runs, name));
    }
    succeeded &= rerun_in(args, place, runs, rows, !names.empty() && !experiment, faults);
  }
  return succeeded ? verdict(faults) : Status::no;
}

Status add(const Args& args) {
  auto all = zs::registry::parse_fields(operands(args, 1, true, "NAME=VALUE... (run_name=NAME names it)"));
  const std::string name = zs::registry::value(all, "run_name");
  std::erase_if(all, [](const auto& field) { return field.first == "run_name"; });
  zs::print(zs::registry::Run::create(registry(args), name, all).id() + "\n");
  return Status::done;
}

Status import_table(const Args& args) {
  std::int64_t faults = 0;
  const std::string csv = operands(args, 1, false, "TABLE")[0];
  const auto sink = zs::cli::fault_printer(kCommand, faults);
  using zs::input::Kind;
  const Kind kind = zs::input::named(csv, "", kCommand.name + " import").kind;
  const bool summary = kind == Kind::records || kind == Kind::hdf5;
  const auto imported = summary ? zs::registry::import_text(registry(args), csv, zs::summary::table_of(csv), sink)
                                : zs::registry::import_runs(registry(args), csv, sink);
  zs::print(std::to_string(imported.made) + (imported.made == 1 ? " run" : " runs") + " imported" +
            (imported.known > 0 ? ", " + std::to_string(imported.known) + " known before" : "") + "\n");
  return verdict(faults);
}

Status export_model(const Args& args) {
  std::int64_t faults = 0;
  const auto names = operands(args, 2, false, "RUN DIR");
  std::string run = names[0];
  while (run.size() > 1 && run.ends_with('/')) run.pop_back();
  if (run.find('/') == std::string::npos || !std::filesystem::is_directory(run))
    run = run_named(args, run, faults).folder();
  const auto done = zs::pretrained::export_run(run, args.text("checkpoint"), names[1]);
  zs::print(names[1] + ": " + std::to_string(done.tensors) + " tensors of " + done.checkpoint +
            (done.merged ? ", adapters merged into them" : "") +
            (done.tokenizer ? ", with its tokenizer" : ", without a tokenizer: the run has read bytes or token files") +
            "\n");
  return verdict(faults);
}

Status remove(const Args& args) {
  std::int64_t faults = 0;
  const auto names = operands(args, 1, true, "RUN...");
  Runs runs = read(registry(args), faults);
  std::vector<std::size_t> rows;
  for (const std::string& name : names) rows.push_back(zs::registry::find_run(runs, id_of(args, name)));
  // All are looked at before the first is removed.
  const auto states = zs::experiment::add_states(registry(args), rows, runs);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (states[i].state == zs::experiment::RunState::running)
      throw zs::Error(runs.text(rows[i], "run_id"), 0, "is RUNNING (" + states[i].basis + "): end that first");
  }
  for (const std::size_t row : rows) {
    const std::string id = runs.text(row, "run_id");
    if (!args.has("yes")) {
      if (!::isatty(STDIN_FILENO)) throw zs::UsageError("rm asks on a terminal: give --yes to remove without");
      std::cerr << "remove " << id << " ("
                << zs::printable(runs.text(row, "run_name") + ", " + runs.text(row, "status"))
                << ") with all its files? [y/N] ";
      std::string answer;
      if (!std::getline(std::cin, answer) || (answer != "y" && answer != "yes")) continue;
    }
    if (const zs::experiment::Holder holder = zs::experiment::holder(registry(args) + "/" + id); holder.here)
      throw zs::Error(id, 0, "is being trained by " + holder.text + " (" + holder.basis + "): end that first");
    zs::registry::remove(registry(args), id);
  }
  zs::registry::refresh_soon(registry(args));
  return verdict(faults);
}

Status reindex(const Args& args) {
  std::int64_t faults = 0;
  operands(args, 0, false, "alone");
  zs::registry::tidy(registry(args));
  zs::print(std::to_string(read(registry(args), faults, true).size()) + " runs\n");
  return verdict(faults);
}

Status act(const Args& args) {
  static const std::map<std::string, Status (*)(const Args&)> kActions = {
      {"show", show},           {"diff", diff},           {"rerun", rerun}, {"update", update},  {"add", add},
      {"import", import_table}, {"export", export_model}, {"rm", remove},   {"reindex", reindex}};
  if (args.operands().empty()) return list(args);
  std::vector<std::string> names;
  for (const auto* const actions : {&kActions, &zs::experiment::actions()}) {
    const auto action = actions->find(args.operands()[0]);
    if (action != actions->end()) return action->second(args);
    for (const auto& [name, body] : *actions) names.push_back(name);
  }
  if (args.has("output")) return write_page(args);
  throw zs::UsageError("unknown action '" + args.operands()[0] + "'" + zs::did_you_mean(args.operands()[0], names));
}

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, act); }
