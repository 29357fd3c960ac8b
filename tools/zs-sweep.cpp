// SPDX-License-Identifier: Apache-2.0
#include "base/file.hpp"
#include "cli/run.hpp"
#include "config/conditions.hpp"
#include "config/sweep.hpp"

namespace {

using zs::cli::Args;

const zs::cli::Command kCommand = {
    "zs-sweep",
    "Expand a sweep into configurations, or a condition set into options",
    "[BASE.yaml SWEEP.yaml|SET]",
    {
        {'o', "output", "DIR", "folder for the configurations and manifest.tsv"},
        {'f', "force", "", "replace the sweep that DIR holds"},
        {0, "count", "", "print how many runs there are, and write nothing"},
        {'n', "dry_run", "", "print the manifest, and write nothing"},
        {'c', "conditions", "FILE",
         "print the conditions of SET in FILE instead: a path, or a name in share/conditions"},
        {'l', "list", "", "list the sets of the conditions file (of batch, if none is named)"},
    },
    {},
    {"zs-sweep config.yaml sweep.yaml --count", "zs-sweep config.yaml sweep.yaml --dry_run",
     "zs-sweep --conditions batch full_comparison"}};

void print(const std::string& text) {
  zs::Output out("-");
  out.write(text);
  out.commit();
}

void print_conditions(const Args& args) {
  const std::string file = args.has("conditions") ? args.text("conditions") : "batch";
  const auto sets = zs::config::read_conditions(file);
  std::string text;
  if (args.has("list")) {
    for (const auto& set : sets) text += set.name + "\t" + set.description + "\n";
  } else {
    const std::string name = args.operand("the name of a set (--list shows them)");
    for (const auto& condition : zs::config::find_set(sets, name, file).conditions)
      text += condition.name + "\t" + condition.options + "\n";
  }
  print(text);
}

zs::Status sweep(const Args& args) {
  if (args.has("conditions") || args.has("list")) return print_conditions(args), zs::Status::done;
  if (args.operands().size() != 2) throw zs::UsageError("expected BASE.yaml SWEEP.yaml");
  const auto base = zs::config::Config::read(args.operands()[0]);
  const auto plan = zs::config::read_sweep(args.operands()[1]);
  for (const auto& text : base.warnings()) zs::cli::warn(kCommand, text);
  for (const auto& text : plan.warnings) zs::cli::warn(kCommand, text);
  if (args.has("count")) return print(std::to_string(zs::config::run_count(plan)) + "\n"), zs::Status::done;

  const auto runs = zs::config::sweep_runs(base, plan);
  if (args.has("dry_run")) return print(zs::config::manifest(plan, runs)), zs::Status::done;
  if (!args.has("output")) throw zs::UsageError("expected --output DIR (or --count, --dry_run)");
  std::string paths;
  for (const auto& path : zs::config::write_sweep(plan, runs, args.text("output"), args.has("force")))
    paths += path + "\n";
  print(paths);
  return zs::Status::done;
}

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, sweep); }
