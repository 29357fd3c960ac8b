// SPDX-License-Identifier: Apache-2.0
#include "train/start.hpp"

#include "base/error.hpp"
#include "base/number.hpp"
#include "config/known.hpp"
#include "config/reading.hpp"
#include "experiment/accepted.hpp"
#include "experiment/command.hpp"
#include "experiment/start.hpp"
#include "input/named.hpp"
#include "plan/profile.hpp"
#include "setup/choices.hpp"
#include "setup/ranks.hpp"
#include "train/results.hpp"

namespace zs::train {
namespace {

/// Throws where `config` is not the one that the run in `folder` was planned with.
void require_planned(const config::Config& config, const std::string& folder) {
  const config::Config planned = config::Config::read(folder + "/config.yaml");
  const auto text = [](const config::Config& from, const std::string& key) {
    const config::Entry* const entry = from.find(key);
    return entry ? entry->value : "not set";
  };
  for (const config::Config* const each : {&planned, &config}) {
    for (const config::Entry& entry : each->entries()) {
      const std::string then = text(planned, entry.key), now = text(config, entry.key);
      if (then != now)
        throw Error("the configuration has changed since this run was planned: " + entry.key + " is " + now + ", was " +
                    then + ": submit again");
    }
  }
}

/// The value of a configuration's key as it was typed, by whichever of its options; "" where by none.
std::string typed(const cli::Args& args, std::string_view key) {
  for (const std::string& option : config::words(config::known(key)->options)) {
    if (args.has(option)) return args.text(option);
  }
  return "";
}

/// The run that --resume names, if any.
std::optional<registry::Run> resumed_run(const cli::Args& args) {
  if (!args.has("resume")) return {};
  if (!args.operands().empty())
    throw UsageError("--resume takes the run's own configuration: leave out " + args.operands().front());
  return input::run(args.text("resume"), registry::place(typed(args, "run.output_dir")), "zs-train --resume");
}

/// The option that asks for something else than a training, or "".
std::string task_of(const cli::Args& args) {
  for (const char* const name :
       {"print_deepspeed_config", "print_model_config", "calibrate", "print_plan", "eval_only"}) {
    if (args.has(name)) return std::string("--") + name;
  }
  return "";
}

/// Stores with the run the values that the model and the ranks chose.
void keep_choices(config::Config& config, const Settings& settings) {
  if (!config.has("model.context_length")) config.choose("model.context_length", to_text(settings.model.seq_length));
  if (settings.chunks > 1 && !config.has("zero.sequence_chunks"))
    config.choose("zero.sequence_chunks", to_text(std::int64_t{settings.chunks}));
  const config::Entry* const whole = config.find("training.train_batch_size");
  if (!whole) return;
  // Other ranks may continue the run: it keeps the numbers that the whole batch led to.
  const std::string origin = whole->origin;
  config.set("training.batch_size", to_text(settings.batch_size), origin);
  if (settings.short_ranks > 0) return;  // accumulation steps do not say it
  config.set("training.gradient_accumulation_steps", to_text(std::int64_t{settings.micro_steps}), origin);
  config.set("training.train_batch_size", "null", origin);
}

/// Values typed for a continued run that differ from the stored ones. The run stays in its folder.
std::vector<Change> changes(config::Config& config, const config::Config& stored) {
  const std::string place = "run.output_dir";
  const config::Entry* const folder = stored.find(place);
  config.set(folder ? *folder : config::Entry{place, "", "", config::Kind::null, config::From::stored});
  std::vector<Change> changes;
  for (const config::Entry& entry : config.entries()) {
    if (entry.from != config::From::user) continue;
    const config::Known* const row = config::known(entry.key);
    const config::Entry* const before = stored.find(entry.key);
    const std::string then = before ? before->value : "not set", now = entry.value.empty() ? "not set" : entry.value;
    if (row ? config::same_form(*row, then) != config::same_form(*row, now) : then != now)
      changes.push_back({entry.key, then, now, entry.origin});
  }
  return changes;
}

/// Throws Error at a setting that has no meaning for a continued run.
void refuse_of_beginnings(const config::Config& config) {
  for (const auto& [key, why] : {std::pair{"run.checkpoint", "a run continues from its own newest checkpoint"},
                                 std::pair{"run.name", "a run keeps its name"}}) {
    const config::Entry* const entry = config.find(key);
    if (entry && entry->from == config::From::user)
      throw UsageError(entry->origin + " has no effect with --resume: " + why + "; leave it out");
  }
  for (const char* const key : {"initialization.init_type", "initialization.init_mean", "initialization.init_std"}) {
    const config::Entry* const entry = config.find(key);
    if (entry && entry->from == config::From::user)
      throw UsageError(entry->origin + ": " + key +
                       " has no effect with --resume: the parameters are those of the "
                       "checkpoint; leave it out");
  }
}

/// The options that a training alone reads.
void choose_outputs(const cli::Args& args, Start& start) {
  start.results = args.text("results");
  if (!start.results.empty()) require_results(start.results);
  start.save_initial = args.text("save_initial");
  start.dump_batches = args.text("dump_batches");
  start.settings.verbose = args.has("verbose_logging") || args.has("debug_log");
  if (start.settings.verbose) start.settings.log_interval = 1;
  if (args.has("debug_log")) start.settings.digest_every = 1;
  if (start.run) start.take_over = args.has("take_over");
}

void require_all_asked(const cli::Args& args, const std::string& task) {
  for (const std::string& option : args.unasked()) {
    if (option == "take_over") throw UsageError("--take_over has no effect here: it needs --resume; leave it out");
    if (option == "cost") throw UsageError("--cost predicts what --print_plan prints: give both");
    throw UsageError("--" + option + " has no effect with " + task + ": leave it out");
  }
}

}  // namespace

Start start(const cli::Args& args, int ranks) {
  Start start;
  start.run = resumed_run(args);
  start.config = experiment::configuration(args, start.run ? start.run->folder() + "/config.yaml" : "");
  if (start.run) {
    refuse_of_beginnings(start.config);
    start.stored = config::Config::read(start.run->folder() + "/config.yaml");
  } else {
    start.run = experiment::planned_run();
    start.planned = start.run.has_value();
    if (start.planned) require_planned(start.config, start.run->folder());
  }
  start.device = setup::chosen_device(start.config.text("run.device"));
  start.task = task_of(args);
  const config::Reading reading(start.config);
  start.settings = setup::settings(reading, ranks, start.device == "cuda");
  for (const std::string& warning : start.config.warnings()) start.settings.notes.push_back(warning);
  if (start.task.empty()) choose_outputs(args, start);
  if (start.task == "--eval_only") setup::choose_evaluation(reading, start.settings);
  if (start.task == "--print_plan") start.cost = args.has("cost");
  if (start.cost) {
    if (const auto profile = reading[config::setting<"zero.plan_profile">])
      start.settings.plan_profile = std::make_shared<plan::Profile>(plan::read_profile(*profile));
    else
      throw UsageError("--cost predicts from measurements: give --plan_profile too");
  }
  if (args.has("eager") && start.config.boolean("zero.compile"))
    throw UsageError("--eager asks for plain kernels and --compile for fused ones: leave out one");
  for (const experiment::Accepted& option : experiment::kAccepted) {
    if (args.has(option.name))
      start.settings.notes.push_back("--" + std::string(option.name) + " has no effect: " + option.why);
  }
  reading.require_read();
  require_all_asked(args, start.task);
  keep_choices(start.config, start.settings);
  if (start.run && !start.planned) start.changes = changes(start.config, start.stored);
  return start;
}

}  // namespace zs::train
