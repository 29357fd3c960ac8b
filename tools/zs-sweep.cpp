// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/file.hpp"
#include "base/words.hpp"
#include "cli/run.hpp"
#include "config/conditions.hpp"
#include "config/sweep.hpp"
#include "experiment/command.hpp"
#include "experiment/foreign.hpp"
#include "experiment/plan.hpp"
#include "input/named.hpp"

namespace {

using zs::cli::Args;

const zs::cli::Command kCommand = {
    "zs-sweep",
    "Expand a sweep into configurations, or a condition set into options",
    "[BASE.yaml SWEEP.yaml|SET] [-- WORD...]",
    {
        {'o', "output", "DIR", "folder for the configurations and manifest.tsv"},
        {'f', "force", "", "replace the sweep that DIR holds"},
        {0, "count", "", "print the number of runs, and write nothing"},
        {'n', "dry_run", "", "print the manifest, and write nothing"},
        {'c', "conditions", "FILE",
         "print the conditions of SET in FILE instead: a path, or a name in share/conditions"},
        {0, "cells", "", "print each run, or condition, as a line for zs-runs plan, followed by the WORDs"},
        {0, "repeats", "N", "with --cells: N runs of each, all once before any a second time", "1"},
        {0, "defaults", "WORDS", "with --cells: options before the condition's options, quoted for a shell"},
        {0, "run", "COMMAND", "command that trains instead of zs-train; its keys are not checked [run: of the file]"},
        {0, "print_run", "", "print only that command"},
        {0, "print_resume", "", "print only the words that resume such a training (resume: of the file)"},
        {'l', "list", "", "list the sets of the conditions file [batch]"},
    },
    {},
    {"zs-sweep config.yaml sweep.yaml --count", "zs-sweep config.yaml sweep.yaml --dry_run",
     "zs-sweep --conditions batch full_comparison"}};

/// The operands that stand before "--".
std::vector<std::string> own_operands(const Args& args) {
  return {args.operands().begin(), args.operands().end() - static_cast<std::ptrdiff_t>(args.behind().size())};
}

bool asks_for(const std::string& option, const std::vector<std::string>& words) {
  try {
    return Args::parse(zs::experiment::train_command(), words).has(option);
  } catch (const zs::UsageError&) {
    return false;  // zs-runs plan refuses them, with the name of the condition
  }
}

/// A training that is to be planned, N times with --repeats.
struct Planned {
  std::string name;
  std::vector<std::string> words;
  std::string repetition_of{};
};

/// Their lines for zs-runs plan. All run once before any runs again: what slows the machine for a while then slows all.
std::string cells(const Args& args, const std::vector<Planned>& planned) {
  const auto repeats = args.integer("repeats", 1, 1000);
  std::string text;
  for (std::int64_t k = 1; k <= repeats; ++k) {
    for (const Planned& one : planned) {
      const std::string name = one.repetition_of.empty() && repeats > 1 ? one.name : one.repetition_of;
      text += zs::experiment::cell_line(repeats > 1 ? one.name + "-" + std::to_string(k) : one.name, one.words, name);
    }
  }
  return text;
}

/// The words of a condition for zs-runs plan. A default length in steps is none where epochs are asked for, and one of
/// sequences belongs to the default model.
std::vector<std::string> condition_words(const Args& args, const zs::config::Condition& condition) {
  std::vector<std::string> words, added;
  try {
    words = zs::shell_words(args.text("defaults"));
    added = zs::shell_words(condition.options);
  } catch (const zs::Error& error) {
    throw zs::Error("condition " + condition.name + ": " + error.what());
  }
  added.insert(added.end(), args.behind().begin(), args.behind().end());
  for (const auto& [length, asked] : {std::pair{"--max_steps", "num_epochs"}, {"--seq_length", "model_name"}}) {
    const auto at = std::find(words.begin(), words.end(), length);
    if (at != words.end() && asks_for(asked, added)) words.erase(at, at + 2);
  }
  words.insert(words.end(), added.begin(), added.end());
  return words;
}

void print_run(const Args& args, const std::string& of_file) {
  const std::string run = args.has("run") ? args.text("run") : of_file;
  zs::print(run.empty() ? "" : run + "\n");
}

void print_conditions(const Args& args) {
  const std::string file = args.has("conditions") ? args.text("conditions") : "batch";
  const auto sets = zs::config::read_conditions(file);
  std::string text;
  if (args.has("list")) {
    for (const auto& set : sets) text += set.name + "\t" + set.description + "\n";
  } else {
    const auto names = own_operands(args);
    if (names.size() != 1) throw zs::UsageError("expected the name of a set (--list shows them)");
    const auto& set = zs::config::find_set(sets, names[0], file);
    if (args.has("print_run")) return print_run(args, set.run);
    if (args.has("print_resume")) return zs::print(set.resume);
    std::vector<Planned> planned;
    for (const auto& condition : set.conditions) {
      if (args.has("cells")) planned.push_back({condition.name, condition_words(args, condition)});
      text += condition.name + "\t" + condition.options + "\n";
    }
    if (args.has("cells")) text = cells(args, planned);
  }
  zs::print(text);
}

zs::Status sweep(const Args& args) {
  if (args.has("conditions") || args.has("list")) return print_conditions(args), zs::Status::done;
  const auto files = own_operands(args);
  if (files.size() != 2) throw zs::UsageError("expected BASE.yaml SWEEP.yaml");
  const auto named = zs::input::named(files, "", kCommand.name);
  auto base = zs::config::Config::read(named[0].path);
  const auto plan = zs::config::read_sweep(named[1].path, args.text("run"));
  if (plan.run.empty()) base = zs::experiment::with_names_of_options(base);
  if (args.has("print_run")) return print_run(args, plan.run), zs::Status::done;
  if (args.has("print_resume")) return zs::print(plan.resume), zs::Status::done;
  if (plan.run.empty()) {
    for (const auto& text : base.warnings()) zs::cli::warn(kCommand, text);
  }
  for (const auto& text : plan.warnings) zs::cli::warn(kCommand, text);
  if (args.has("count")) return zs::print(std::to_string(zs::config::run_count(plan)) + "\n"), zs::Status::done;

  const auto runs = zs::config::sweep_runs(base, plan);
  if (!plan.run.empty()) {
    for (const auto& run : runs) {
      zs::experiment::Cell cell{run.name, {run.file}};
      cell.arguments.insert(cell.arguments.end(), args.behind().begin(), args.behind().end());
      zs::experiment::require_options(plan.run, plan.resume, cell, run.config);
    }
  }
  if (args.has("dry_run")) return zs::print(zs::config::manifest(plan, runs)), zs::Status::done;
  if (!args.has("output")) throw zs::UsageError("expected --output DIR (or --count, --dry_run)");
  const auto paths = zs::config::write_sweep(plan, runs, args.text("output"), args.has("force"));
  std::string text;
  std::vector<Planned> planned;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::vector<std::string> words = {paths[i]};
    words.insert(words.end(), args.behind().begin(), args.behind().end());
    planned.push_back({runs[i].name, std::move(words), runs[i].repetition_of});
    text += paths[i] + "\n";
  }
  zs::print(args.has("cells") ? cells(args, planned) : text);
  return zs::Status::done;
}

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, sweep); }
