// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <csignal>

#include "base/input.hpp"
#include "base/sheet.hpp"
#include "cli/form.hpp"
#include "cli/run.hpp"
#include "input/source.hpp"
#include "parse/custom.hpp"
#include "registry/run.hpp"

namespace {

using zs::cli::Args;
namespace parse = zs::parse;

const zs::cli::Command kCommand = {
    "zs-parse",
    "Turn training logs and runs of TensorBoard, W&B and MLflow into metric records",
    "[LOG|RECORDS|RUN|DIR]...",
    {
        {'o', "output", "FILE", "write to FILE, whole or not at all", "-"},
        {0, "format", "FORM", "form of the output", "tsv", {"tsv", "csv", "h5", "jsonl"}},
        {0, "run", "NAME", "name of the run; several logs are its parts, in order", "the file's name"},
        {'d', "dialect", "NAME", "read only this dialect", "all, recognised per line", parse::dialect_names()},
        {'p', "pattern", "REGEX", "also read lines that match, named groups as keys"},
        {0, "patterns", "FILE", "file of patterns for other trainers' logs, see zs-parse(1) [~/.config/zs/patterns]"},
        {0, "learn", "",
         "write a pattern for a log that nothing reads into the file of patterns, and read the log by it"},
        {'m', "map", "COLUMN=KEY", "take COLUMN from KEY of the log; several with commas"},
        {0, "set", "KEY=VALUE", "attribute for every run, such as revision=v1.2; several with commas"},
        {0, "rank", "WHICH", "records of all ranks, of rank 0, or their mean", "all", {"all", "0", "mean"}},
        {0, "stats", "", "count on stderr how every line was read"},
        {'r', "registry", "DIR", "folder of the runs [$ZS_REGISTRY, else saved_models]"},
        {'f', "follow", "", "wait for more at the end of the log, until interrupted"},
    },
    {{1, "faults: malformed metric lines, or no metric line at all; the rest was written"}},
    {"zs-parse run.log", "zs-parse a.log b.log | zs-aggregate --format table",
     "zs-parse --format h5 -o run.h5 run.log"}};

std::atomic<bool> interrupted = false;

parse::Options options_of(const Args& args) {
  parse::Options options;
  options.dialect = args.has("dialect") ? args.text("dialect") : "";
  options.pattern = args.text("pattern");
  options.map = parse::map_of(args.text("map"));
  options.ranks = args.text("rank") == "0"      ? parse::Ranks::first
                  : args.text("rank") == "mean" ? parse::Ranks::mean
                                                : parse::Ranks::all;
  if (!args.has("follow")) return options;
  if (args.inputs().size() > 1) throw zs::UsageError("--follow takes one log");
  if (zs::cli::form_of(args, "tsv") != "tsv") throw zs::UsageError("--follow writes the text form only");
  options.follow_until = &interrupted;
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { interrupted = true; });
  return options;
}

zs::Status run(const Args& args) {
  const std::string form = zs::cli::form_of(args, "tsv");
  if (args.text("output") == "-" && ::isatty(STDOUT_FILENO)) zs::watch_reading({});  // the records are the progress
  const std::string patterns = args.text("patterns");
  if (args.has("learn")) {
    if (args.inputs().size() != 1) throw zs::UsageError("--learn takes one log");
    const auto [file, pattern] = parse::learn(args.inputs().front(), patterns);
    std::fprintf(stderr, "zs-parse: %s has a new pattern: %s\n", file.c_str(), pattern.c_str());
  }
  parse::customize(patterns, [](const std::string& text) { zs::cli::warn(kCommand, text); });
  auto options = options_of(args);
  const auto given = parse::attributes_of(args.text("set"));
  const auto named = zs::input::named(args.inputs(), zs::registry::place(args.text("registry")), kCommand.name);
  auto jobs = zs::input::jobs(named, args.has("run") ? args.text("run") : "");
  for (parse::Job& job : jobs) {
    for (const auto& [key, value] : given) job.attributes[key] = value;
  }
  zs::Output out(args.text("output"));
  options.caught_up = [&] { out.flush(); };
  std::int64_t faults = 0;
  const auto counts = parse::convert(jobs, options,
                                     form == "h5"      ? parse::Form::h5
                                     : form == "csv"   ? parse::Form::csv
                                     : form == "jsonl" ? parse::Form::jsonl
                                                       : parse::Form::tsv,
                                     out, zs::cli::fault_printer(kCommand, faults));
  out.commit();
  if (args.has("stats")) std::fputs(zs::aligned(parse::as_sheet(counts)).c_str(), stderr);
  return faults > 0 ? zs::Status::no : zs::Status::done;
}

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, run); }
