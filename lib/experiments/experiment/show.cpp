// SPDX-License-Identifier: Apache-2.0
// The actions of zs-runs that show runs: the list, one run, two runs side by side.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "attribute/difference.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "cli/form.hpp"
#include "cli/progress.hpp"
#include "cli/run.hpp"
#include "compare/records.hpp"
#include "experiment/action.hpp"
#include "experiment/experiment.hpp"
#include "experiment/page.hpp"
#include "experiment/rerun.hpp"
#include "experiment/state.hpp"
#include "input/named.hpp"
#include "registry/listing.hpp"
#include "registry/query.hpp"
#include "registry/runs.hpp"

namespace zs::experiment {
namespace {

std::string format(const cli::Args& args) {
  return cli::form_of(args, args.has("output") ? "html" : ::isatty(STDOUT_FILENO) ? "table" : "tsv");
}

/// Prints a sheet. With `note`, a table is as wide as the line, and `note` gets the number of columns that are left
/// out. Without it, every column stays.
void print_sheet(const cli::Args& args, const Sheet& sheet, const std::function<std::string(std::size_t)>& note = {}) {
  const std::string how = format(args);
  const auto write = [&](const std::string& text) {
    if (args.has("output")) return write_file(args.text("output"), text);
    print(text);
  };
  if (how == "tsv") return write(to_tsv(sheet));
  if (how == "csv") return write(to_csv(sheet));
  if (how == "json") return write(to_json(sheet));
  if (how == "openmetrics") return write(registry::to_openmetrics(sheet));
  if (how == "html") throw UsageError("a page shows the list of runs: leave out --format html");
  std::size_t left_out = 0;
  const Sheet fit = fitted(sheet, note ? cli::line_width() : 0, left_out);
  write(aligned(fit) + (note ? note(left_out) : ""));
}

/// Statistics of the columns, below a table: several tables if the line is too short for one.
void print_statistics(const Sheet& whole) {
  std::size_t none = 0;
  Sheet fit = fitted(whole, 0, none);
  for (std::size_t row = 0; row < fit.rows.size(); ++row) fit.rows[row].back() = whole.rows[row].back();  // in full
  for (std::size_t i = fit.header.size(); i-- > 0;) {
    if (std::ranges::any_of(fit.rows, [i](const auto& row) { return !row[i].empty(); })) continue;
    fit.header.erase(fit.header.begin() + static_cast<std::ptrdiff_t>(i));
    for (auto& row : fit.rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(i));
  }
  print("\n" + aligned(fit, cli::line_width()));
}

/// --output: the runs as a page, once or until a signal ends it.
Status page(const cli::Args& args) {
  std::int64_t faults = 0;
  const int every = args.has("watch") ? static_cast<int>(args.integer("watch", 1, 86400)) : 0;
  write_page(place_of(args), args.operands(), question_of(args), {args.text("output"), every},
             args.command().name + " " + cli::version(), cli::fault_printer(args.command(), faults));
  return verdict(faults);
}

/// An experiment: its fields, and how each of its cells stands.
Status show_experiment(const cli::Args& args, const std::string& folder) {
  auto experiment = Experiment::read(folder);
  experiment.judge();
  Sheet sheet{{"topic", "field", "value"}, {}};
  for (const auto& [key, value] : experiment.fields) sheet.rows.push_back({"experiment", key, value});
  for (const auto& cell : experiment.cells) {
    const std::string state = registry::value(cell.fields, "found.state");
    sheet.rows.push_back({"condition", cell.name, state + ": " + registry::value(cell.fields, "found.basis")});
  }
  print_sheet(args, sheet);
  return Status::done;
}

std::size_t row_of(const registry::Runs& runs, const registry::Run& run) { return registry::find_run(runs, run.id()); }

Status show(const cli::Args& args) {
  std::int64_t faults = 0;
  const std::string name = operands(args, 1, false, "RUN").front();
  const input::Named named = input::named(name, place_of(args), args.command().name);
  if (named.kind == input::Kind::results) return show_experiment(args, named.path);
  const registry::Run run = runs_of(args, {name}).front();
  const registry::Runs runs = read(args, run.registry(), faults);
  Sheet sheet = registry::run_listing(runs, row_of(runs, run));
  if (format(args) == "table") {  // values in full
    for (auto& cells : sheet.rows) cells[2] = printable(backslashed(cells[2]));
    return print(aligned(sheet)), verdict(faults);
  }
  if (format(args) != "json") return print_sheet(args, sheet), verdict(faults);
  std::vector<std::string> keys, values;
  for (const auto& row : sheet.rows) keys.push_back(row[1]), values.push_back(row[2]);
  print(to_json(keys, values));
  return verdict(faults);
}

std::optional<metric::Run> metrics_in(const std::string& folder) {
  if (!std::filesystem::exists(folder + "/metrics.h5")) return {};
  return metrics_of(folder);
}

/// Adds where the records part and what keeps them from being compared.
void add_first_difference(const metric::Run& x, const metric::Run& y, Sheet& sheet) {
  const auto found = compare::records({sheet.header[2], &x.records}, {sheet.header[3], &y.records}, {});
  if (found.first) {
    const compare::Pair& first = *found.first;
    sheet.rows.push_back(
        {"metric", first.column + " at " + to_text(first.place) + ", the first to differ", first.a, first.b});
  }
  for (const auto& reason : found.reasons) sheet.rows.push_back({"metric", reason.text, "", ""});
  for (const auto& name : found.only_a) sheet.rows.push_back({"metric", name, "recorded", ""});
  for (const auto& name : found.only_b) sheet.rows.push_back({"metric", name, "", "recorded"});
}

Status diff(const cli::Args& args) {
  std::int64_t faults = 0;
  const auto names = operands(args, 2, false, "RUN RUN");
  const std::vector<registry::Run> both = runs_of(args, names);
  if (both[0].registry() != both[1].registry())
    throw Error(names[1], 0,
                "is in the registry " + both[1].registry() + ", and " + names[0] + " in " + both[0].registry() +
                    ": zs-verify compares any two");
  const registry::Runs runs = read(args, both[0].registry(), faults);
  const std::size_t a = row_of(runs, both[0]), b = row_of(runs, both[1]);
  Sheet sheet = registry::difference(runs, a, b);
  const auto x = metrics_in(both[0].folder()), y = metrics_in(both[1].folder());
  if (x && y) add_first_difference(*x, *y, sheet);
  const bool differ = !sheet.rows.empty();
  const auto facts = [&](std::size_t row, const std::optional<metric::Run>& metrics) {
    attribute::Facts merged = metrics ? metrics->attributes : attribute::Facts();
    for (const auto& [name, value] : runs.fields(row)) merged.emplace(name, value);
    return merged;
  };
  const std::string bits = attribute::verdict_on_bits(facts(a, x), facts(b, y));
  const bool table = format(args) == "table";  // which has room for a sentence below it alone
  if (!bits.empty() && !table) sheet.rows.push_back({"verdict", "bits", bits, ""});
  print_sheet(args, sheet);
  if (!bits.empty() && table) print(bits + "\n");
  return differ ? Status::no : verdict(faults);
}

/// Why no run is listed, by the values in the columns of the tests: "none of 5 runs passes: model.name is gpt2, tiny".
std::string none_passes(const registry::Runs& runs, const registry::Question& question) {
  std::vector<std::string> columns, clauses;
  for (const std::string& test : question.filters) columns.push_back(registry::parse_filter(runs, test).column);
  if (question.sweep) columns.emplace_back("sweep_name");
  for (const std::string& column : columns) {
    std::set<std::string> values;
    for (std::size_t row = 0; row < runs.size(); ++row) values.emplace(first_characters(runs.text(row, column), 60));
    const bool some_lack = values.erase("") > 0;
    std::vector<std::string> texts(values.begin(), values.end());
    if (some_lack) texts.emplace_back(texts.empty() ? "in no run" : "absent in others");
    clauses.push_back(column + " is " + some_of(texts, 6));
  }
  return "none of " + counted(runs.size(), "run") + " passes: " + joined(clauses, "; ");
}

}  // namespace

/// The question that the options ask.
registry::Question question_of(const cli::Args& args) {
  registry::Question question{args.all("filter"),   args.has("or"),         {},
                              args.text("sort_by"), args.has("descending"), {},
                              args.all("show"),     args.all("hide"),       format(args) == "table"};
  for (const char* const name : {"filter_sweep", "sweep"}) {
    if (args.has(name)) question.sweep = args.text(name);
  }
  if (args.has("limit")) question.limit = static_cast<std::size_t>(args.integer("limit", 0));
  return question;
}

Status list(const cli::Args& args) {
  if (format(args) == "html") {
    if (!args.has("output")) throw UsageError("a page is a file: name it with --output FILE.html");
    return page(args);
  }
  if (args.has("watch")) throw UsageError("--watch rewrites a page: name it with --output FILE.html");
  if (args.has("output") && !args.operands().empty())
    throw UsageError("a page has the runs of operands, a list those of the registry: write FILE.html, or leave out '" +
                     args.operands()[0] + "'");
  std::int64_t faults = 0;
  if (args.has("statistics") && (args.has("list_columns") || format(args) == "openmetrics"))
    throw UsageError(std::string("--statistics is of a table of runs: leave out ") +
                     (args.has("list_columns") ? "--list_columns" : "--format openmetrics"));
  registry::Runs runs = read(args, place_of(args), faults);
  registry::Question question = question_of(args);
  const std::size_t known = runs.columns.size();
  const bool states = args.has("status") || asks_for_states(question, runs);
  if (states) find_states(place_of(args), question, runs);
  if (args.has("list_columns")) return print_sheet(args, registry::column_listing(runs)), verdict(faults);
  const auto answer = registry::ask(runs, question);
  // Shows a person the state of a run, not its last report.
  if (question.telling && !states && question.show.empty()) tell_states(place_of(args), answer.rows, runs);
  Sheet sheet = registry::listing(runs, answer.rows, answer.columns);
  const Sheet whole = args.has("statistics") ? registry::statistics(sheet) : Sheet{};
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
  if (answer.matching == 0 && runs.size() > 0) cli::warn(args.command(), none_passes(runs, question));
  return verdict(faults);
}

const Actions& showing() {
  static const Actions kActions = {{"show", show}, {"diff", diff}};
  return kActions;
}

}  // namespace zs::experiment
