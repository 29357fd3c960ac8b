// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "base/number.hpp"
#include "cli/run.hpp"
#include "config/foreign.hpp"
#include "parse/custom.hpp"
#include "parse/run.hpp"
#include "recording/session.hpp"
#include "registry/run.hpp"

namespace {

using zs::cli::Args;
namespace parse = zs::parse;

const zs::cli::Command kCommand = {
    "zs-record",
    "Run any training as a run of the registry",
    "-- COMMAND...",
    {
        {'n', "name", "NAME", "name of the run", "its id"},
        {0, "run_name", "NAME", "same as --name"},
        {0, "registry", "DIR", "folder of the registry [$ZS_REGISTRY, else saved_models]"},
        {'c',
         "config",
         "FILE",
         "configuration of the training, YAML or JSON; options of the command override it",
         "",
         {},
         true},
        {0, "set", "KEY=VALUE", "a setting of the training; it overrides all others", "", {}, true},
        {'t', "timeout", "SECONDS",
         "if nothing is printed for so long, ask every rank where it is, and report it; 0: never [$ZS_TIMEOUT, else "
         "0]"},
        {0, "on_hang", "end|wait", "then end the command, or wait for it", "end", {"end", "wait"}},
        {'d', "dialect", "NAME", "read only this dialect in the output of the command", "all, recognised per line",
         parse::dialect_names()},
        {'p', "pattern", "REGEX", "also read lines that match, named groups as keys"},
        {0, "patterns", "FILE", "file of patterns for other trainers' logs, see zs-parse(1) [~/.config/zs/patterns]"},
        {'m', "map", "COLUMN=KEY", "take COLUMN from KEY of the log; several with commas"},
    },
    {{0, "the command's own exit status; 128 + N if signal N ended it"},
     {126, "the command cannot be started"},
     {127, "there is no such command"}},
    {"zs-record -- python3 -c 'for i in range(1, 4): print(f\"step {i} loss {1 / i}\")'",
     "zs-record --name first --set lr=0.1 -- bash -c 'echo step 1 loss 2.5'",
     "zs-record --registry runs -- zs-train --model_name tiny --max_steps 3"}};

zs::Status run(const Args& args) {
  if (args.operands().size() > args.behind().size())
    throw zs::UsageError("'" + args.operands().front() +
                         "': the command follows --, as in zs-record -- python train.py");
  if (args.behind().empty()) throw zs::UsageError("expected -- COMMAND..., the training to run");
  const auto warn = [](const std::string& text) { zs::cli::warn(kCommand, text); };
  parse::customize(args.text("patterns"), warn);
  zs::recording::Recording recording;
  recording.command = args.behind();
  recording.config = zs::config::foreign_configuration(args.behind(), args.all("config"), args.all("set"));
  for (const char* const option : {"name", "run_name"}) {
    if (args.has(option)) recording.config.set({"run.name", args.text(option), "--name", zs::config::Kind::quoted});
  }
  recording.registry = zs::registry::place(args.text("registry"));
  recording.reading.dialect = args.has("dialect") ? args.text("dialect") : "";
  recording.reading.pattern = args.text("pattern");
  recording.reading.map = parse::map_of(args.text("map"));
  const char* const timeout = std::getenv("ZS_TIMEOUT");
  recording.timeout = args.has("timeout") ? args.real("timeout", 0, 1e9) : 0;
  if (!args.has("timeout") && timeout && *timeout) {
    const auto seconds = zs::parse_real(timeout);
    if (!seconds || !(*seconds >= 0))
      throw zs::UsageError(std::string("ZS_TIMEOUT: '") + timeout + "' is not a number of seconds");
    recording.timeout = *seconds;
  }
  recording.end_hang = args.text("on_hang") == "end";
  recording.tell = [](const std::string& text) { zs::cli::tell(kCommand, text); };
  recording.warn = warn;
  return static_cast<zs::Status>(zs::recording::record(recording));
}

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, run); }
