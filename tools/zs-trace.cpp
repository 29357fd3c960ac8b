// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "cli/run.hpp"
#include "cli/table.hpp"
#include "trace/analysis.hpp"

namespace {

using zs::cli::Args;
namespace trace = zs::trace;
namespace fs = std::filesystem;

std::vector<std::string> shown() {
  std::vector<std::string> names;
  for (const trace::Analysis& analysis : trace::analyses()) names.emplace_back(analysis.name);
  return names;
}

const zs::cli::Command kCommand = {
    "zs-trace",
    "Say where the time of profiler traces went",
    "[TRACE|DIR]...",
    {
        {'s', "show", "NAME", "only this analysis", "all of which there is something to say", shown()},
        {'a', "against", "TRACE|DIR",
         "what differs from these traces, operation by operation, in place of the analyses"},
        {'n', "top", "N", "rows of kernels, operators and operations; 0: all", "10"},
        {0, "kernel_delay", "US", "gaps shorter than this, in microseconds, are the next kernel's", "30"},
        {0, "with_last_step", "", "the last profiler step too, which is mostly cut"},
        {'f', "format", "FORM", "form of the output; tsv needs --show or --against", "table", {"table", "tsv", "json"}},
        {'o', "output", "FILE", "write to FILE, whole or not at all", "-"},
    },
    {{1, "there were faults: a trace that is cut, events without a time; the rest was analysed"}},
    {"zs-trace rank-0.pt.trace.json.gz", "zs-trace --show temporal --format tsv traces/",
     "zs-trace --against before/ after/"}};

bool is_trace(const std::string& name) {
  return name.ends_with(".json") || name.ends_with(".json.gz") || name.ends_with(".json.zst");
}

std::vector<std::string> files_of(const std::string& operand) {
  std::error_code ignored;
  if (!fs::is_directory(operand, ignored)) return {operand};
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(operand)) {
    if (entry.is_regular_file() && is_trace(entry.path().filename().string())) files.push_back(entry.path().string());
  }
  if (files.empty()) throw zs::Error(operand, 0, "holds no trace (*.json, *.json.gz)");
  std::sort(files.begin(), files.end());
  return files;
}

/// "trace-rank-3.json" -> 3; -1 where the name has no rank.
std::int64_t rank_in(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  std::size_t at = name.find("rank");
  if (at == std::string::npos) return -1;
  at = name.find_first_not_of("-_", at + 4);
  const std::size_t end = at == std::string::npos ? at : name.find_first_not_of("0123456789", at);
  return at == std::string::npos ? -1 : zs::parse_int(name.substr(at, end - at)).value_or(-1);
}

std::vector<trace::Trace> read(const std::vector<std::string>& operands, bool with_last_step,
                               const zs::FaultSink& faults) {
  std::vector<trace::Trace> traces;
  for (const std::string& operand : operands) {
    for (const std::string& file : files_of(operand)) {
      trace::Trace one = trace::read(file, faults);
      if (!one.rank_known) one.rank = rank_in(file) >= 0 ? rank_in(file) : static_cast<std::int64_t>(traces.size());
      trace::prepare(one, with_last_step);
      traces.push_back(std::move(one));
    }
  }
  std::stable_sort(traces.begin(), traces.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  std::set<std::int64_t> ranks;
  for (const trace::Trace& one : traces) {
    if (!ranks.insert(one.rank).second) faults({one.path, 0, "is a second trace of rank " + zs::to_text(one.rank)});
  }
  return traces;
}

nlohmann::ordered_json json_of(const trace::Answer& answer) {
  auto rows = nlohmann::ordered_json::array();
  for (const auto& row : answer.rows) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto number = zs::parse_real(row[i]);
      const bool finite = number && std::isfinite(*number);
      object[answer.columns[i]] = row[i].empty() ? nlohmann::ordered_json()
                                  : finite       ? nlohmann::ordered_json::parse(row[i], nullptr, false)
                                                 : nlohmann::ordered_json(row[i]);
      if (object[answer.columns[i]].is_discarded()) object[answer.columns[i]] = row[i];
    }
    rows.push_back(std::move(object));
  }
  return rows;
}

std::string tsv_of(const trace::Answer& answer) {
  std::string text;
  const auto add = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) text += (i ? "\t" : "") + zs::printable(row[i]);
    text += "\n";
  };
  add(answer.columns);
  for (const auto& row : answer.rows) add(row);
  return text;
}

/// For people: the long names of kernels without their middle.
trace::Answer shortened(trace::Answer answer) {
  constexpr std::size_t kMost = 64;
  for (auto& row : answer.rows) {
    for (std::string& cell : row) {
      if (cell.size() > kMost) cell = cell.substr(0, kMost / 2) + "..." + cell.substr(cell.size() - kMost / 2 + 3);
    }
  }
  return answer;
}

zs::Status run(const Args& args) {
  const std::string form = args.text("format");
  const bool one = args.has("show") || args.has("against");
  if (form == "tsv" && !one) throw zs::UsageError("--format tsv is of one table: name it by --show");
  if (args.has("show") && args.has("against")) throw zs::UsageError("--show and --against are two questions: ask one");
  trace::Settings settings;
  settings.kernel_delay = args.real("kernel_delay", 0, 1e9);
  settings.most = static_cast<std::size_t>(args.integer("top", 0, 1000000));
  if (settings.most == 0) settings.most = SIZE_MAX;
  std::int64_t faults = 0;
  const auto sink = zs::cli::fault_printer(kCommand, faults);
  const auto traces = read(args.inputs(), args.has("with_last_step"), sink);
  std::vector<std::pair<const trace::Analysis*, trace::Answer>> answers;
  static const trace::Analysis kDifference{"difference", "what differs, operation by operation", nullptr};
  if (args.has("against")) {
    answers.emplace_back(&kDifference, trace::difference(read({args.text("against")}, args.has("with_last_step"), sink),
                                                         traces, settings));
  } else {
    for (const trace::Analysis& analysis : trace::analyses()) {
      if (!args.has("show") || args.text("show") == analysis.name)
        answers.emplace_back(&analysis, analysis.run(traces, settings));
    }
  }
  zs::Output out(args.text("output"));
  if (form == "json") {
    nlohmann::ordered_json all;
    for (const trace::Trace& each : traces)
      all["traces"].push_back({{"path", each.path},
                               {"rank", each.rank},
                               {"world_size", each.world_size},
                               {"events", each.read},
                               {"analysed", each.events.size()},
                               {"steps", each.steps.size()}});
    for (const auto& [analysis, answer] : answers) all[std::string(analysis->name)] = json_of(answer);
    out.write(all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else if (form == "tsv") {
    out.write(tsv_of(answers.front().second));
  } else {
    std::string text;
    for (const auto& [analysis, answer] : answers) {
      if (answer.rows.empty() && !one) continue;
      text += (text.empty() ? "" : "\n") + std::string(analysis->name) + ": " + std::string(analysis->what) + "\n";
      text +=
          answer.rows.empty() ? "nothing in these traces\n" : zs::cli::table(answer.columns, shortened(answer).rows);
    }
    out.write(text.empty() ? "nothing that zs-trace knows is in these traces\n" : text);
  }
  out.commit();
  return faults > 0 ? zs::Status::no : zs::Status::done;
}

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, run); }
