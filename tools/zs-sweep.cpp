// SPDX-License-Identifier: Apache-2.0
#include "base/file.hpp"
#include "cli/run.hpp"
#include "config/conditions.hpp"

namespace {

const zs::cli::Command kCommand = {
    "zs-sweep",
    "Expand a sweep into configurations",
    "[BASE.yaml SWEEP.yaml|SET]",
    {
        {'c', "conditions", "FILE", "print the conditions of SET in FILE instead: a path, or a name in share/conditions", "batch"},
        {'l', "list", "", "list the sets of the conditions file"},
    }};

zs::Status sweep(const zs::cli::Args& args) {
  const std::string file = args.text("conditions");
  const auto sets = zs::config::read_conditions(file);
  zs::Output out("-");
  if (args.has("list")) {
    for (const auto& set : sets) out.write(set.name + "\t" + set.description + "\n");
  } else {
    for (const auto& condition : zs::config::find_set(sets, args.operand("the name of a set"), file).conditions) {
      out.write(condition.name + "\t" + condition.options + "\n");
    }
  }
  out.commit();
  return zs::Status::done;
}

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, sweep); }
