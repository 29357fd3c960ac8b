// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.hpp"
#include "base/words.hpp"
#include "cli/form.hpp"
#include "cli/progress.hpp"
#include "cli/run.hpp"
#include "input/source.hpp"
#include "metric/file.hpp"
#include "metric/summary_text.hpp"
#include "parse/custom.hpp"
#include "registry/run.hpp"
#include "stat/columns.hpp"
#include "stat/outlier.hpp"
#include "stat/print.hpp"
#include "stat/summary.hpp"
#include "summary/source.hpp"

namespace {

const zs::cli::Command kCommand = {
    "zs-aggregate",
    "Turn metric records into a summary: statistics per condition",
    "[RECORDS|LOG|RUN|DIR]...",
    {
        {'b', "by", "KEY[,KEY]", "group runs by these attributes, one condition per value"},
        {'w', "warmup", "N|auto",
         "timed points to leave out at the start of each run; auto: its slow start [the number that the run itself "
         "leaves out, else 5]"},
        {'c', "columns", "NAME[,NAME]",
         "also summarise these columns of the records: first, last, min, max, mean and its interval"},
        {'x',
         "outliers",
         "RULE",
         "times to leave out; outliers are counted in any case",
         "none",
         {"none", "p99", "mad"}},
        {0, "deviation", "KIND", "standard deviation by n - 1 or by n", "sample", {"sample", "population"}},
        {'t', "target", "LOSS", "report the first step with a loss of at most this"},
        {'F', "filter", "TEST",
         "only conditions that pass this test of a column or an attribute, in the syntax of zs-runs --filter; join "
         "several with ' && '"},
        {'s', "sort", "COLUMN", "sort the conditions by a column or an attribute"},
        {0, "descending", "", "the largest first"},
        {0, "seed", "N", "seed of the bootstrap intervals", "1"},
        {'f',
         "format",
         "NAME",
         "form; default: a table on a terminal, text into a pipe, h5 into a file",
         "",
         {"h5", "text", "table", "tsv", "csv", "json"}},
        {0, "patterns", "FILE", "file of patterns for other trainers' logs, see zs-parse(1) [~/.config/zs/patterns]"},
        {'r', "registry", "DIR", "folder of the runs [$ZS_REGISTRY, else saved_models]"},
        {'o', "output", "FILE", "write the summary to FILE, '-' for stdout", "-"},
    },
    {{1, "the summary was written, but a run is neither COMPLETE nor UNKNOWN; stderr names it"}},
    {"zs-parse run.log | zs-aggregate --format table", "zs-parse run.log | zs-aggregate > summary.h5",
     "zs-parse a.log b.log | zs-aggregate --by zero_stage --format json"}};

/// The words of an option: "a,b" as a and b.
std::vector<std::string> list(const zs::cli::Args& args, const char* option, const char* at) {
  const std::string text = args.text(option);
  return text.empty() ? std::vector<std::string>() : zs::split(text, at);
}

std::string formatted(const zs::metric::Store& store, const std::string& format) {
  if (format == "tsv") return zs::to_tsv(zs::stat::sheet_of(*store.summary));
  if (format == "csv") return zs::to_csv(zs::stat::sheet_of(*store.summary));
  if (format == "json") return zs::stat::to_json(store);
  if (format == "h5") return zs::metric::to_h5(store);
  if (format == "text") return zs::metric::to_summary_text(store);
  const std::size_t width = ::isatty(STDOUT_FILENO) ? zs::cli::line_width() : 0;
  std::string text = zs::aligned(zs::stat::for_people(*store.summary), width);
  const auto columns = store.attributes.find("columns");
  if (columns != store.attributes.end()) {
    text += "\n" + zs::aligned(zs::stat::columns_for_people(*store.summary, zs::split(columns->second, ",")), width);
  }
  const zs::Sheet pairs = zs::stat::divergence_for_people(store.tables.at("divergence"));
  return pairs.rows.empty() ? text : text + "\n" + zs::aligned(pairs, width);
}

/// The form that suits where the summary goes: people, another program, a file.
std::string form_for(const std::string& output) {
  if (output == "-" && ::isatty(STDOUT_FILENO)) return "table";
  struct stat status {};
  const int found = output == "-" ? ::fstat(STDOUT_FILENO, &status) : ::stat(output.c_str(), &status);
  return found != 0 || S_ISREG(status.st_mode) ? "h5" : "text";
}

/// Says which runs cannot be believed, and how many there are.
std::size_t complain(const zs::metric::Table& summary) {
  std::size_t bad = 0;
  for (std::size_t row = 0; row < summary.rows(); ++row) {
    const std::string status = summary.find("status")->text(row);
    if (const auto state = zs::attribute::state_named(status); state && zs::attribute::believable(*state)) continue;
    ++bad;
    zs::cli::warn(kCommand, "condition '" + summary.find("condition")->text(row) + "' is " + status + ": " +
                                summary.find("reason")->text(row));
  }
  return bad;
}

zs::Status aggregate(const zs::cli::Args& args) {
  zs::parse::customize(args.text("patterns"), [](const std::string& text) { zs::cli::warn(kCommand, text); });
  zs::stat::SummaryRule rule;
  rule.by = list(args, "by", ",");
  rule.columns = list(args, "columns", ",");
  rule.timing.find_warmup = args.text("warmup") == "auto";
  if (args.has("warmup") && !rule.timing.find_warmup)
    rule.timing.warmup = static_cast<std::size_t>(args.integer("warmup", 0));
  if (args.text("outliers") == "p99") rule.timing.outliers = zs::stat::Outliers::above_p99;
  if (args.text("outliers") == "mad") rule.timing.outliers = zs::stat::Outliers::far_out;
  if (args.text("deviation") == "population") rule.deviation = zs::stat::Deviation::population;
  if (args.has("target")) rule.target = args.real("target", -HUGE_VAL, HUGE_VAL);
  rule.seed = static_cast<std::uint64_t>(args.integer("seed", 0));
  std::int64_t faults = 0;
  const auto named = zs::input::named(args.inputs(), zs::registry::place(args.text("registry")), kCommand.name);
  zs::stat::Summary summary = zs::stat::summarize(
      zs::input::read(named, {.progress = {}, .fault = zs::cli::fault_printer(kCommand, faults)}), rule);
  if (args.has("descending") && !args.has("sort"))
    throw zs::UsageError("--descending says how to --sort: name a column");
  if (args.has("filter") || args.has("sort")) {
    zs::metric::Store left;
    left.runs = zs::summary::chosen(std::move(summary.store),
                                    {list(args, "filter", " && "), args.text("sort"), args.has("descending")});
    summary = zs::stat::summarize(std::move(left), rule);
  }
  summary.store.attributes["tool"] = std::string("zs-aggregate ") + zs::cli::version();
  for (const std::string& warning : summary.warnings) zs::cli::warn(kCommand, warning);
  for (const std::string& sentence : zs::stat::outlier_sentences(summary.store)) zs::cli::warn(kCommand, sentence);
  const std::string format = zs::cli::form_of(args, form_for(args.text("output")));
  if (format == "h5" && args.text("output") == "-" && ::isatty(STDOUT_FILENO))
    throw zs::UsageError("HDF5 is not for a terminal: redirect it, or use -o FILE");
  zs::write_file(args.text("output"), formatted(summary.store, format));
  return complain(*summary.store.summary) > 0 || faults > 0 ? zs::Status::no : zs::Status::done;
}

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, aggregate); }
