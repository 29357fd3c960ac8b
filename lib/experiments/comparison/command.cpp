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

/// Adds the many options of a training, after the options that only zs-verify has.
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
  comparing("allow", "WHAT", "rounding: status 0 also for the verdict 'equal up to rounding'", "", {"rounding"});
  comparing(
      "follow", "",
      "the last recording is of a training that still runs: compare or check each step as it is written, and end at "
      "the first that is wrong");
  comparing("patience", "SECONDS", "how long --follow waits for a further step [600]");
  comparing("floor", "PROBE",
            "the first training, recorded once more with ZS_PROBE_PERTURB=1: it measures the effect of rounding; or a "
            "healthy dump");
  comparing("columns", "NAME,...",
            "compare only these columns of runs and logs: loss,grad_norm; training decides "
            "learning_rate, tokens and state_digest too, and the results of evaluations");
  comparing(
      "rtol", "X",
      "allowed difference relative to the reference [0; 0.05 for --reference amp; for apart, merged and whole 1e-4 in "
      "float32, else 0.05]");
  comparing("atol", "X", "allowed absolute difference [0; 2^-24 with --reference amp in float16]");
  comparing("names", "FILE",
            "file with two names of a parameter in each line, blank between: in the first checkpoint, in the others")
      .letter = 'n';
  comparing("registry", "DIR", "folder of the runs [$ZS_REGISTRY, else saved_models]").letter = 'r';
  comparing("patterns", "FILE", "file of patterns for other trainers' logs, see zs-parse(1) [~/.config/zs/patterns]");
  goldens(
      "golden", "FOLDER",
      "compare a recording, or each in a folder, with the golden of its environment in FOLDER: the same bits, other "
      "bits because of another environment, or because of the code");
  goldens("update", "", "write the recording into --golden as that of its environment, and say what moved");
  resuming(
      "resume", "COMMAND",
      "train with this shell command, stop, resume, and report what the resume lost; words in it: {steps} the step "
      "after which it ends, {total} the last step of all, {at}, {run} its folder, {resume} of --resume_with");
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
      "flip the lowest bit of one gradient element, to show that zs-verify finds it; or STEP:KIND:UNIT[:RANK], where "
      "KIND is stale, swapped, torn, scale, heads or output");
  add_settings(table);
  table.push_back(experiment::local_rank_option());
  running("timeout", "SECONDS", "how long a collective waits for a rank before the run stops", "50");
  table.push_back(experiment::set_option());
  return table;
}

}  // namespace

cli::Command command() {
  return {"zs-verify",
          "Compare two trainings, or check one",
          "A B... | PROBE | DUMP | [CONFIG.yaml]",
          options(),
          {{0, "equal, consistent or within the tolerance; with --allow rounding, equal up to rounding"},
           {1, "DIFFERENT, INCONSISTENT, equal up to rounding, or FAILED: nothing was proved"},
           {3, "not decided: inconclusive, or not comparable"}},
          {"zs-verify a b", "zs-verify --golden goldens probe",
           "zs-verify --model_name tiny --zero_stage 3 --num_layers 1 --iterations 3",
           "zs-verify --model_name tiny --num_layers 1 --repeat 3"},
          {"Comparing", "Goldens", "Resuming", "Output"}};
}

}  // namespace zs::comparison
