// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/sheet.hpp"
#include "base/text.hpp"
#include "cli/form.hpp"
#include "cli/run.hpp"
#include "flight/dump.hpp"
#include "input/named.hpp"
#include "metric/file.hpp"
#include "registry/run.hpp"
#include "trace/analysis.hpp"
#include "trace/trace.hpp"

namespace {

using zs::cli::Args;
namespace trace = zs::trace;

std::vector<std::string> shown() {
  std::vector<std::string> names;
  for (const trace::Analysis& analysis : trace::analyses()) names.emplace_back(analysis.name);
  return names;
}

const zs::cli::Command kCommand = {
    "zs-trace",
    "Show where the time of profiler traces went",
    "[TRACE|RUN|DIR]...",
    {
        {'s', "show", "NAME", "only this analysis", "all that have results", shown()},
        {'a', "against", "TRACE|RUN|DIR",
         "show the differences from these traces, operation by operation, instead of the analyses"},
        {0, "flight", "DIR",
         "analyse the Flight Recorder's dumps of a training's ranks: which rank did not enter which collective"},
        {'n', "top", "N", "rows of kernels, operators and operations; 0: all", "10"},
        {0, "kernel_delay", "US", "count gaps shorter than this, in microseconds, to the next kernel", "30"},
        {0, "with_last_step", "", "include the last profiler step, which is usually cut"},
        {0, "whole_microseconds", "",
         "round each event inwards to whole microseconds, as Holistic Trace Analysis does"},
        {'r', "registry", "DIR", "folder of the runs [$ZS_REGISTRY, else saved_models]"},
        {'f',
         "format",
         "FORM",
         "form of the output, if the file's name (.json, .tsv, .h5) does not give it; tsv needs --show or --against",
         "table",
         {"table", "tsv", "csv", "json", "h5"}},
        {'o', "output", "FILE", "write to FILE, whole or not at all", "-"},
    },
    {{1,
      "faults, such as a cut trace or events without a time; the rest was analysed; with --flight, ranks that hang"}},
    {"zs-trace rank-0.pt.trace.json.gz", "zs-trace --show temporal --format tsv traces/",
     "zs-trace --against before/ after/"}};

/// "us", "bytes", or "" of names, counts and shares.
std::string unit_of(std::string_view analysis, const std::string& column) {
  static const std::set<std::string_view> kTimes = {
      "all_waits",   "communication", "computing", "full_time", "host_wait",     "idle",         "kernel_time",
      "kernel_wait", "max",           "mean",      "min",       "non_computing", "other_wait",   "others_waited",
      "overlapped",  "peak_at",       "std",       "time",      "time_change",   "time_control", "time_test"};
  if (column == "peak_allocated" || column == "peak_reserved") return "bytes";
  const bool lengths = analysis == "queue" && column != "full_time";
  return (kTimes.contains(column) && !lengths) || column.starts_with("delay") ? "us" : "";
}

/// The answers as the tables of a metric file.
std::string h5_of(const std::vector<std::pair<const trace::Analysis*, zs::Sheet>>& answers) {
  zs::metric::Store store;
  store.attributes["tool"] = std::string("zs-trace ") + zs::cli::version();
  for (const auto& [analysis, answer] : answers) {
    if (answer.rows.empty()) continue;
    zs::metric::Table& table = store.tables[std::string(analysis->name)];
    for (std::size_t i = 0; i < answer.header.size(); ++i) {
      zs::metric::Column column(answer.header[i], unit_of(analysis->name, answer.header[i]), zs::metric::Type::text);
      for (const auto& row : answer.rows) column.texts().push_back(row[i]);
      table.columns.push_back(zs::metric::inferred(std::move(column)));
    }
  }
  return zs::metric::to_h5(store);
}

/// For people: heads with units, numbers of six digits, and the long names of kernels without their middle.
zs::Sheet shortened(std::string_view analysis, zs::Sheet answer) {
  constexpr std::size_t kMost = 64;
  for (std::string& head : answer.header) {
    if (const std::string unit = unit_of(analysis, head); !unit.empty()) head += " (" + unit + ")";
  }
  for (auto& row : answer.rows) {
    for (std::string& cell : row) {
      const auto real = zs::parse_int(cell) ? std::nullopt : zs::parse_real(cell);
      if (real) cell = zs::to_shown_text(*real, 6);
      if (cell.size() > kMost) cell = cell.substr(0, kMost / 2) + "..." + cell.substr(cell.size() - kMost / 2 + 3);
    }
  }
  return answer;
}

zs::Status flight(const Args& args) {
  if (!args.operands().empty()) throw zs::UsageError("--flight takes a folder and no traces");
  std::int64_t faults = 0;
  const auto dumps = zs::flight::read_dumps(args.text("flight"), zs::cli::fault_printer(kCommand, faults));
  const zs::flight::Finding found = zs::flight::explain(dumps);
  zs::Output out(args.text("output"));
  out.write(zs::printable(found.sentence) + "\n");
  out.commit();
  return found.stuck || faults > 0 ? zs::Status::no : zs::Status::done;
}

zs::Status run(const Args& args) {
  if (args.has("flight")) return flight(args);
  const std::string form = zs::cli::form_of(args, "table");
  if (form == "h5" && args.text("output") == "-" && ::isatty(STDOUT_FILENO))
    throw zs::UsageError("HDF5 is not for a terminal: redirect it, or use -o FILE");
  const bool one = args.has("show") || args.has("against");
  const bool rows = form == "tsv" || form == "csv";
  if (rows && !one) throw zs::UsageError("a " + form + " file has one table: name it with --show");
  if (args.has("show") && args.has("against")) throw zs::UsageError("--show and --against are two questions: ask one");
  trace::Settings settings;
  settings.kernel_delay = args.real("kernel_delay", 0, 1e9);
  settings.most = static_cast<std::size_t>(args.integer("top", 0, 1000000));
  if (settings.most == 0) settings.most = SIZE_MAX;
  std::int64_t faults = 0;
  const auto sink = zs::cli::fault_printer(kCommand, faults);
  const auto read = [&](const std::vector<std::string>& names) {
    const auto named = zs::input::named(names, zs::registry::place(args.text("registry")), kCommand.name);
    return trace::read_all(zs::input::traces(named), {args.has("with_last_step"), args.has("whole_microseconds")},
                           sink);
  };
  const auto traces = read(args.inputs());
  std::vector<std::pair<const trace::Analysis*, zs::Sheet>> answers;
  static const trace::Analysis kDifference{"difference", "what differs, operation by operation", nullptr};
  if (args.has("against")) {
    answers.emplace_back(&kDifference, trace::difference(read({args.text("against")}), traces, settings));
  } else {
    const trace::Question question(traces, settings.kernel_delay);
    for (const trace::Analysis& analysis : trace::analyses()) {
      if (!args.has("show") || args.text("show") == analysis.name)
        answers.emplace_back(&analysis, analysis.run(question, settings.most));
    }
  }
  zs::Output out(args.text("output"));
  if (form == "json") {
    nlohmann::ordered_json report;
    for (const trace::Trace& each : traces)
      report["traces"].push_back({{"path", each.path},
                                  {"rank", each.rank},
                                  {"world_size", each.world_size},
                                  {"events", each.read},
                                  {"analysed", each.events.size()},
                                  {"steps", each.steps.size()}});
    for (const auto& [analysis, answer] : answers) report[std::string(analysis->name)] = zs::to_objects(answer);
    out.write(report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else if (form == "h5") {
    out.write(h5_of(answers));
  } else if (rows) {
    out.write(form == "tsv" ? zs::to_tsv(answers.front().second) : zs::to_csv(answers.front().second));
  } else {
    std::string text;
    for (const auto& [analysis, answer] : answers) {
      if (answer.rows.empty() && !one) continue;
      text += (text.empty() ? "" : "\n") + std::string(analysis->name) + ": " + std::string(analysis->what) + "\n";
      text += answer.rows.empty() ? "nothing in these traces\n" : zs::aligned(shortened(analysis->name, answer));
    }
    out.write(text.empty() ? "nothing that zs-trace knows is in these traces\n" : text);
  }
  out.commit();
  return faults > 0 ? zs::Status::no : zs::Status::done;
}

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, run); }
