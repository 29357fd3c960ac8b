// SPDX-License-Identifier: Apache-2.0
#include "comparison/command.hpp"

#include <algorithm>
#include <limits>

#include "attribute/table.hpp"
#include "cli/rows.hpp"
#include "config/known.hpp"
#include "experiment/command.hpp"

namespace zs::comparison {

bool used(std::string_view key) {
  const attribute::Attribute* const row = attribute::find(key);
  return !row || !(row->role == attribute::Role::identity || row->watches || row->through == "expected_steps" ||
                   row->name == "checkpoint");
}

compare::Tolerance tolerance(const cli::Args& args, compare::Tolerance otherwise) {
  constexpr double kMost = std::numeric_limits<double>::max();
  if (args.has("rtol")) otherwise.rtol = args.real("rtol", 0, kMost);
  if (args.has("atol")) otherwise.atol = args.real("atol", 0, kMost);
  return otherwise;
}

namespace {

/// After the options of zs-verify alone: those of a training are many.
void add_settings(std::vector<cli::Option>& table) {
  for (cli::Option option : experiment::config_options()) {
    const config::Known* const known = config::known_option(option.name);
    if (known && !used(known->key)) continue;
    for (const Default& fallback : kDefaults) {
      if (known && known->key == fallback.key && option.name == config::words(known->options).front())
        option.fallback = fallback.value, option.help.resize(std::min(option.help.find(';'), option.help.size()));
    }
    table.push_back(option);
  }
}

std::vector<cli::Option> options() {
  std::vector<cli::Option> table;
  cli::Rows comparing(table, "Comparing"), goldens(table, "Goldens"), resuming(table, "Resuming"),
      output(table, "Output"), beside(table, "Beside plain PyTorch"), running(table, "Running");
  comparing("columns", "NAME,...", "compare only these columns of recorded runs (loss,grad_norm)");
  comparing("names", "FILE", "file with two names in a line, of the first checkpoint and of the others").letter = 'n';
  comparing("allow", "WHAT", "accept this difference too: rounding gives 'equal up to rounding' status 0", "",
            {"rounding"});
  comparing("rtol", "X",
            "allowed difference relative to the reference (default: 0; 0.05 across arithmetics, 1e-4 with documents "
            "apart, adapters merged or sequences whole, in float32)");
  comparing("atol", "X", "allowed absolute difference (default: 0; 2^-24 across arithmetics of float16)");
  comparing("registry", "DIR", "folder of the runs [$ZS_REGISTRY, else saved_models]").letter = 'r';
  comparing("patterns", "FILE", "file of patterns for other trainers' logs, see zs-parse(1) [~/.config/zs/patterns]");
  comparing(
      "floor", "PROBE",
      "measures the effect of rounding: the first probe's training recorded with ZS_PROBE_PERTURB=1, or a healthy dump "
      "of log-probabilities");
  comparing("follow", "",
            "the last probe is of a training that still runs: compare each step as it is written, or check it if the "
            "probe is alone, and end at the first that is wrong");
  comparing("patience", "SECONDS", "how long --follow waits for a further step [600]");
  goldens(
      "golden", "FOLDER",
      "compare a recording, or each in a folder, with the golden of its environment in FOLDER: the same bits, other "
      "bits because of another environment, or because of the code");
  goldens("update", "", "write the recording into --golden as that of its environment, and say what moved");
  resuming(
      "resume", "COMMAND",
      "train with a shell command to the end, train again, stop and resume, and report what the resume lost; in the "
      "command {steps} is the step after which it ends, {total} the last step of all (for a schedule), {run} its "
      "folder, {resume} the argument of --resume_with");
  resuming("resume_with", "ARGS", "arguments that resume a training; {checkpoint} is its newest whole checkpoint");
  resuming("resume_command", "COMMAND", "command that resumes, if it differs: on other ranks, under another stage");
  resuming("at", "N", "the step after which the training is stopped");
  resuming("steps", "M", "the last step");
  resuming("keep", "DIR", "folder of these trainings [resume-test]");
  output("format", "FORM", "form of the output", "text", {"text", "tsv", "json", "github"});
  auto& file =
      output("output", "FILE",
             "also write a file: .h5 the records of all steps; .json, .tsv or .txt what --format of that name prints");
  file.letter = 'o', file.forms = {"h5", "json", "tsv", "text"};
  output("verbose_logging", "", "print a line for each unit of each step");
  beside("iterations", "N", "steps to train and compare", "10");
  beside(
      "reference", "WHICH",
      "reference: same is LibTorch in the target's arithmetic; amp is LibTorch's autocast (bfloat16, or the target's "
      "float16) from float32 parameters; apart is LibTorch over each document alone; merged is LibTorch with each "
      "adapter added to its weight before the product; whole is LibTorch over whole sequences",
      "same", {"same", "amp", "apart", "merged", "whole"});
  beside("repeat", "N",
         "train the same steps (1 without --iterations) N times from the same state, without a reference, and name the "
         "first unit and operation whose bits differ from the first time; an injected fault hits only the last time");
  beside(
      "inject_fault", "STEP:PARAMETER:INDEX[:RANK]",
      "flip the lowest bit of one gradient element in the target, to show that zs-verify finds it; or "
      "STEP:KIND:UNIT[:RANK]: lose (stale), swap (swapped) or tear (torn) offloaded state of a unit on disk, send a "
      "wrong scale of its parameters (scale), exchange queries of a head where sequences have chunks (heads), or, with "
      "--repeat, change a number of its forward output (output)");
  add_settings(table);
  table.push_back(experiment::local_rank_option());
  table.push_back(experiment::set_option());
  running("timeout", "SECONDS", "how long a collective waits for a rank before the run stops", "50");
  return table;
}

}  // namespace

cli::Command command() {
  return {"zs-verify",
          "Compare two trainings: recorded runs, checkpoints, recordings of zs_probe or log-probabilities; check one "
          "recording; or train, and compare with plain PyTorch semantics or with a repetition",
          "A B... | PROBE | DUMP | [CONFIG.yaml]",
          options(),
          {{0, "no difference beyond the tolerance"},
           {1, "a difference, or nothing was proved; the verdict says which"},
           {3, "no decision: the two train different things, or one lacks what the other has"}},
          {"zs-verify a b", "zs-verify --golden goldens probe",
           "zs-verify --model_name tiny --zero_stage 3 --num_layers 1 --iterations 3",
           "zs-verify --model_name tiny --num_layers 1 --repeat 3"},
          {"Comparing", "Goldens", "Resuming", "Output"}};
}

}  // namespace zs::comparison
