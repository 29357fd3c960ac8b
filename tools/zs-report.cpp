// SPDX-License-Identifier: Apache-2.0
#include "cli/run.hpp"
#include "gradient/history.hpp"
#include "metric/file.hpp"
#include "registry/run.hpp"
#include "report/batch.hpp"
#include "report/gradients.hpp"
#include "report/revision.hpp"
#include "report/sweep.hpp"
#include "report/write.hpp"

namespace {

const zs::cli::Command kCommand = {
    "zs-report",
    "Write the report of a summary, in Markdown or as one HTML file",
    "[SUMMARY]",
    {
        {'o', "output", "FILE", "write the report to FILE (.md, .html; of revisions also .json), '-' for stdout", "-"},
        {'f', "format", "NAME", "format, where the file's name does not say it", "", {"md", "html", "json"}},
        {'k',
         "kind",
         "NAME",
         "conditions side by side, revisions against a baseline, or the parameters of a sweep",
         "batch",
         {"batch", "revision", "sweep"}},
        {'g', "gradients", "RUN", "report on the gradients that a run, or single checkpoints, saved", "", {}, true},
        {'r', "registry", "DIR", "gradients: folder of the runs [$ZS_REGISTRY, else saved_models]"},
        {0, "figures", "DIR", "put the pictures of a Markdown report into DIR; without it, beside the report"},
        {0, "baseline", "CONDITION", "revision: the condition to compare with; without it, the first"},
        {0, "max_slowdown", "PERCENT", "revision: how much longer a step may take, and how much memory may grow", "3"},
        {0, "rows", "KEY", "sweep: the attribute down the side of the map; without it, the first that differs"},
        {0, "columns", "KEY", "sweep: the attribute along its top; without it, the next that differs"},
        {0, "value", "COLUMN",
         "sweep: the result to judge by; without it, valid_loss if there is one, else final_loss"},
        {0, "theme", "FILE", "colours and fonts of the figures; share/plot/theme is an example"},
        {0, "title", "TEXT", "the title of the report"},
    },
    {{0, "done: every condition is complete, or not known to be otherwise, and no state digests disagree"},
     {1,
      "a condition is FAILED, DIVERGED, DEAD or TRUNCATED, or state digests of the same training disagree; of "
      "revisions: worse or different; of gradients: a layer's is not sound"},
     {3, "of revisions: the data do not show it"}}};

zs::report::Document document(const zs::cli::Args& args, const zs::metric::Store& store, const std::string& source) {
  const zs::report::Findings found = zs::report::findings(store, source);
  const std::string folder = zs::report::folder_of(args.text("output"));
  if (args.text("kind") == "batch") return zs::report::batch(store, found, source, folder);
  if (args.text("kind") == "revision") {
    return zs::report::revision(store, found, source, folder,
                                {args.text("baseline"), args.real("max_slowdown", 0, 1000) / 100});
  }
  zs::plot::Options options;
  options.rows = args.text("rows");
  options.columns = args.text("columns");
  options.value = args.text("value");
  return zs::report::sweep(store, found, source, folder, options);
}

/// The report of a summary, from a file or stdin.
zs::report::Document of_summary(const zs::cli::Args& args, std::vector<std::string>& warnings) {
  const std::string input = args.input();
  const zs::metric::Store store = zs::summary::summarized(zs::metric::read(input), warnings);
  return document(args, store, input == "-" ? "stdin" : input);
}

/// The report of runs and checkpoints.
zs::report::Document of_gradients(const zs::cli::Args& args) {
  if (!args.operands().empty())
    throw zs::UsageError("--gradients needs no summary: leave out '" + args.operands().front() + "'");
  return zs::report::gradients(zs::gradient::read(zs::gradient::find(
      args.all("gradients"), zs::registry::place(args.text("registry")), zs::cli::fault_warner(kCommand))));
}

zs::Status report(const zs::cli::Args& args) {
  const std::string output = args.text("output");
  const zs::plot::Theme theme = args.has("theme") ? zs::plot::read_theme(args.text("theme")) : zs::plot::Theme();
  std::vector<std::string> warnings;
  zs::report::Document text = args.has("gradients") ? of_gradients(args) : of_summary(args, warnings);
  if (args.has("title")) text.title = args.text("title");
  text.tool = std::string("zs-report ") + zs::cli::version();
  const auto format = zs::report::format_of(args.has("format") ? "." + args.text("format") : output);
  for (std::string& warning : zs::report::write(text, format, output, args.text("figures"), theme))
    warnings.push_back(std::move(warning));
  for (const std::string& warning : warnings) zs::cli::warn(kCommand, warning);
  if (text.verdict == zs::report::Verdict::bad) return zs::Status::no;
  return text.verdict == zs::report::Verdict::open && args.text("kind") == "revision" ? zs::Status::inconclusive
                                                                                      : zs::Status::done;
}

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, report); }
