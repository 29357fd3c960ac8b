// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "base/file.hpp"
#include "base/folder.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "cli/form.hpp"
#include "cli/progress.hpp"
#include "cli/run.hpp"
#include "experiment/experiment.hpp"
#include "gradient/history.hpp"
#include "gradient/select.hpp"
#include "parse/custom.hpp"
#include "registry/run.hpp"
#include "report/batch.hpp"
#include "report/pages.hpp"
#include "report/probes.hpp"
#include "report/write.hpp"
#include "summary/source.hpp"
#include "trace/trace.hpp"

namespace {

const zs::cli::Command kCommand = {
    "zs-report",
    "Write the report of a summary, in Markdown or as one HTML file",
    "[SUMMARY|LOG|RUN|DIR]... | PROBE PROBE",
    {
        {'o', "output", "FILE",
         "write the report to FILE (.md, .html, .pdf; for revisions also .json, for gradients .json and .tsv), '-' for "
         "stdout; without it, for a folder, write report.html, report.md and the pictures into that folder, of "
         "revisions "
         "revision_comparison_report.html, .md and revision_comparison_data.json",
         "-"},
        {'f',
         "format",
         "NAME",
         "format, if the file's name does not give it",
         "",
         {"md", "html", "pdf", "json", "tsv"}},
        {'k',
         "kind",
         "NAME",
         "compare conditions, compare revisions with a baseline, or study the parameters of a sweep; of a results "
         "folder: what it was planned for",
         "batch",
         {"batch", "revision", "sweep"}},
        {'g', "gradients", "RUN", "report on the gradients that a run, or single checkpoints, saved", "", {}, true},
        {'t',
         "trace",
         "TRACE|DIR",
         "add a section on profiler traces; without other operands, report only on them",
         "",
         {},
         true},
        {0, "by", "WHAT", "gradients: of layers, or of single tensors", "layer", {"layer", "tensor"}},
        {0, "patterns", "FILE", "file of patterns for other trainers' logs, see zs-parse(1) [~/.config/zs/patterns]"},
        {'r', "registry", "DIR", "folder of the runs [$ZS_REGISTRY, else saved_models]"},
        {0,
         "figures",
         "DIR",
         "put the pictures of a Markdown report into DIR; without it, next to the report",
         "",
         {},
         false,
         "",
         true},
        {0, "baseline", "CONDITION", "revision: the condition to compare with [the first]"},
        {0, "test_config", "WORDS", "revision: the options of every run, where the folder does not record them"},
        {0, "max_slowdown", "PERCENT", "revision: largest allowed growth of time and memory", "3"},
        {0, "rows", "KEY", "sweep: the attribute down the side of the map [the first that differs]"},
        {0, "columns", "KEY", "sweep: the attribute along its top [the next that differs]"},
        {0, "value", "COLUMN", "sweep: the result to judge by [valid_loss if all have one, else final_loss]"},
        {0, "theme", "FILE", "colours and fonts of the figures; share/plot/theme is an example"},
        {0, "title", "TEXT", "the title of the report"},
        {0, "sections", "TITLE", "only these sections below the verdict, in this order; several with commas"},
    },
    {{0, "done: every condition is complete, or not known to be otherwise, and no state digests disagree"},
     {1,
      "a condition is neither COMPLETE nor UNKNOWN, or state digests of the same training disagree; "
      "revisions: worse or different; recordings: not equal; gradients: a layer's gradient is not sound"},
     {3, "revisions and recordings: the data cannot decide"}},
    {"zs-report saved_models", "zs-report a.log b.log -o report.html", "zs-report --gradients a -o gradients.html"}};

namespace fs = std::filesystem;
using zs::report::Format;

/// The kind of report: as the options say, else as planned by the experiment whose results folder is the only operand.
struct Kind {
  std::string name;
  zs::report::Gate gate;
  zs::stat::SummaryRule rule;
};

zs::report::Document document(const zs::cli::Args& args, const Kind& kind, const zs::metric::Store& store,
                              const std::string& source, const std::string& folder) {
  const zs::report::Findings found = zs::report::findings(store, source);
  if (kind.name == "batch") return zs::report::batch(store, found, source, folder);
  if (kind.name == "revision") return zs::report::revision(store, found, source, folder, kind.gate);
  zs::plot::Options options;
  options.rows = args.text("rows");
  options.columns = args.text("columns");
  options.value = args.text("value");
  return zs::report::sweep(store, found, source, folder, options);
}

/// The operands of the report, or of one of its options.
std::vector<zs::input::Named> named(const zs::cli::Args& args, const std::vector<std::string>& names,
                                    const std::string& option) {
  return zs::input::named(names, zs::registry::place(args.text("registry")), kCommand.name + option);
}

Kind kind_of(const zs::cli::Args& args) {
  Kind kind{args.text("kind"), {args.text("baseline"), args.real("max_slowdown", 0, 1000) / 100}, {}};
  const auto& operands = args.operands();
  const bool plans = operands.size() == 1 && zs::experiment::Experiment::at(operands[0]);
  const auto planned = plans ? zs::experiment::Experiment::read(operands[0]).fields : zs::registry::Fields();
  const auto fact = [&](const char* name) { return zs::registry::value(planned, name); };
  if (!args.has("kind") && fact("report") != "") kind.name = fact("report");
  if (!args.has("kind") && fact("report") == "" && fact("revision1.name") != "") kind.name = "revision";
  if (kind.name != "revision") return kind;
  kind.rule.by = {"revision"};
  if (!args.has("baseline")) kind.gate.baseline = fact("revision1.name");
  const bool silent =
      operands.size() == 1 && zs::is_folder(operands[0]) && !zs::is_there(operands[0] + "/metadata.json");
  if (kind.gate.baseline.empty() && silent)
    throw zs::UsageError(operands[0] + " does not record which revision is the baseline: name it with --baseline");
  if (const auto most = zs::parse_real(fact("max_slowdown")); most && !args.has("max_slowdown"))
    kind.gate.max_slowdown = *most / 100;
  if (const auto warmup = zs::parse_int(fact("timing_warmup")))
    kind.rule.timing.warmup = static_cast<std::size_t>(*warmup);
  return kind;
}

/// The report of the operands: a summary, logs, runs, folders. `faults` are defects of logs.
zs::report::Document of_inputs(const zs::cli::Args& args, const Kind& kind, const std::string& folder,
                               std::int64_t& faults) {
  const std::vector<std::string> inputs = args.inputs();
  zs::cli::Progress progress;
  const zs::input::Listener listener = {
      .progress = [&](std::size_t done, std::size_t total, const std::string& name) { progress.at(done, total, name); },
      .fault = zs::cli::fault_printer(kCommand, faults)};
  zs::metric::Store store = zs::summary::read(
      named(args, inputs, ""), listener, [](const std::string& text) { zs::cli::warn(kCommand, text); }, kind.rule);
  if (args.has("test_config")) {
    store.attributes["test_config"] = args.text("test_config");
    for (zs::metric::Run& run : store.runs) run.attributes.emplace("test_config", args.text("test_config"));
  }
  return document(args, kind, store,
                  inputs.size() > 1  ? std::to_string(inputs.size()) + " inputs"
                  : inputs[0] == "-" ? "stdin"
                                     : inputs[0],
                  folder);
}

/// The report of runs and checkpoints.
zs::report::Document of_gradients(const zs::cli::Args& args, Format format) {
  if (!args.operands().empty())
    throw zs::UsageError("--gradients needs no summary: leave out '" + args.operands().front() + "'");
  const zs::gradient::Sources sources = zs::gradient::find(named(args, args.all("gradients"), " --gradients"));
  zs::cli::Progress progress;
  zs::gradient::History history = zs::gradient::read(
      sources, [&](std::size_t done) { progress.at(done, sources.found.size(), sources.found[done].path); });
  if (args.text("by") == "tensor") history = zs::gradient::by_tensor(std::move(history));
  return zs::report::gradients(history, format);
}

/// The requested report. `faults` are defects of the inputs.
zs::report::Document document(const zs::cli::Args& args, const Kind& kind, Format format, const std::string& folder,
                              std::int64_t& faults) {
  const auto& operands = args.operands();
  std::vector<std::vector<zs::input::Kind>> kinds;  // of one operand or two
  for (const std::string& operand : operands) {
    if (operands.size() <= 2 && zs::is_there(operand)) kinds.push_back(zs::input::kinds_of(operand));
  }
  const auto all_are = [&](zs::input::Kind what) {
    return !kinds.empty() && kinds.size() == operands.size() &&
           std::ranges::all_of(kinds, [&](const auto& each) { return each.front() == what; });
  };
  const bool probe = std::ranges::any_of(
      operands, [](const std::string& operand) { return zs::input::is(operand, zs::input::Kind::probe); });
  for (const std::string& operand : operands) {
    if (probe) zs::input::kinds_of(operand);  // throws if it is not there, which the refusal of a probe would hide
  }
  const bool rollouts = all_are(zs::input::Kind::rollout);
  if (rollouts || all_are(zs::input::Kind::probe)) {
    for (const char* const option : {"kind", "gradients", "trace"}) {
      if (args.has(option)) throw zs::UsageError("--" + std::string(option) + " says nothing about probes");
    }
    if (rollouts) return zs::report::rollouts(operands[0], operands.size() > 1 ? operands[1] : "");
    if (operands.size() == 2) return zs::report::probes(operands[0], operands[1]);
    const bool generates = std::ranges::find(kinds[0], zs::input::Kind::rollout) != kinds[0].end();
    return zs::report::probe(operands[0], generates);
  }
  if (!args.has("trace"))
    return args.has("gradients") ? of_gradients(args, format) : of_inputs(args, kind, folder, faults);
  const auto traces = zs::trace::read_all(zs::input::traces(named(args, args.all("trace"), " --trace")), {},
                                          zs::cli::fault_printer(kCommand, faults));
  if (args.operands().empty() && !args.has("gradients")) return zs::report::trace(traces);
  zs::report::Document text =
      args.has("gradients") ? of_gradients(args, format) : of_inputs(args, kind, folder, faults);
  // Before the last section, which says where the numbers come from.
  const auto last = text.sections.empty() ? text.sections.end() : text.sections.end() - 1;
  text.sections.insert(last, zs::report::trace_section(traces));
  return text;
}

/// Throws if another file has the name of the report, and zs-report did not write it.
void require_ours(const std::string& path) {
  if (!fs::exists(path)) return;
  const std::string text = zs::Input(path).read_all();
  const bool json = text.starts_with("{\n  \"verdict\": ") && text.find("\"revisions\": ") != std::string::npos;
  if (!json && text.find("Written by zs-report") == std::string::npos)
    throw zs::Error(path, 0, "is not a report of zs-report, and would be written over: name another file with -o");
}

zs::Status report(const zs::cli::Args& args) {
  zs::parse::customize(args.text("patterns"), [](const std::string& text) { zs::cli::warn(kCommand, text); });
  const std::string first = args.operands().empty() ? "" : args.operands()[0];
  const bool beside =
      !args.has("output") && !args.has("format") && args.operands().size() == 1 && fs::is_directory(first);
  const zs::figure::Theme theme = args.has("theme") ? zs::figure::read_theme(args.text("theme")) : zs::figure::Theme();
  std::vector<std::string> outputs = {args.text("output")};
  const Kind kind = kind_of(args);
  if (beside) {
    outputs = {"report.html", "report.md"};
    if (kind.name == "revision")  // the names of slurm/compare-revisions.sbatch
      outputs = {"revision_comparison_report.html", "revision_comparison_report.md", "revision_comparison_data.json"};
    for (std::string& output : outputs) output = (fs::path(first) / output).string();
    std::for_each(outputs.begin(), outputs.end(), require_ours);
  }
  std::int64_t faults = 0;
  const std::string folder = zs::report::folder_of(outputs[0]);
  const auto format_of = [&](const std::string& output) {
    return zs::report::format_named(beside ? output.substr(output.rfind('.') + 1) : zs::cli::form_of(args, "md"));
  };
  zs::report::Document text = document(args, kind, format_of(outputs[0]), folder, faults);
  if (args.has("title")) text.title = args.text("title");
  if (args.has("sections")) zs::report::keep_sections(args.text("sections"), text);
  text.tool = std::string("zs-report ") + zs::cli::version();
  for (const std::string& output : outputs) {
    for (const std::string& warning : zs::report::write(text, format_of(output), output, args.text("figures"), theme))
      zs::cli::warn(kCommand, warning);
  }
  if (outputs[0] != "-") zs::write_file("-", text.label + ": " + zs::joined(outputs) + "\n");
  if (text.verdict == zs::report::Verdict::bad || faults > 0) return zs::Status::no;
  const bool decides = kind.name == "revision" || text.label == "inconclusive";  // of revisions, of recordings
  return text.verdict == zs::report::Verdict::open && decides ? zs::Status::inconclusive : zs::Status::done;
}

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, report); }
