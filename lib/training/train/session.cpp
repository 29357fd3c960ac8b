// SPDX-License-Identifier: Apache-2.0
#include "train/session.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/host.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "checkpoint/folder.hpp"
#include "cli/run.hpp"
#include "metric/file.hpp"
#include "parse/step_line.hpp"
#include "plan/cost.hpp"
#include "registry/record.hpp"
#include "registry/run.hpp"
#include "setup/agreement.hpp"
#include "setup/describe.hpp"
#include "setup/memory.hpp"
#include "train/calibrate.hpp"
#include "train/deepspeed.hpp"
#include "train/results.hpp"
#include "train/tracking.hpp"
#include "train/trainer.hpp"
#include "unit/arithmetic.hpp"

namespace zs::train {
namespace {

using Clock = std::chrono::steady_clock;

/// A run's log in its folder.
class Log {
 public:
  /// Opens the log of a run whose first `done` steps are known.
  Log(const registry::Run& run, std::int64_t done) : path_(run.folder() + "/run.log") {
    if (std::filesystem::exists(path_))
      write_file(path_, done > 0 ? parse::earlier_lines(Input(path_).read_all(), done) : "");
    log_.open(path_, std::ios::app);
    if (!log_) throw Error(path_, 0, errno_text());
  }

  void write(const std::string& line) {
    log_ << line << std::endl;
    if (!log_) throw Error(path_, 0, "write: " + errno_text());
  }

 private:
  std::string path_;
  std::ofstream log_;
};

/// A run's metrics in its folder, which another training may have taken over: that is seen before they are written.
class Metrics : public metric::FileWriter {
 public:
  Metrics(const registry::Run& run, experiment::Lease& lease)
      : FileWriter(run.folder() + "/metrics.h5"), lease_(lease) {}
  void flush(bool now) override {
    if (!due(now)) return;
    lease_.check();
    FileWriter::flush(true);
  }

 private:
  experiment::Lease& lease_;
};

/// How zs-train ends; every rank alike.
Status status(const Outcome& outcome) {
  return outcome.stopped ? Status::try_again : outcome.diverged.empty() ? Status::done : Status::no;
}

registry::Fields result_fields(const Outcome& outcome, double wall_time) {
  registry::Fields fields = {{"final_train_loss", to_text(outcome.final_loss)},
                             {"throughput", to_text(outcome.throughput)},
                             {"iteration_time", to_text(outcome.iteration_time)},
                             {"peak_memory", to_text(outcome.peak_mem)},
                             {"wall_time", to_text(wall_time)},
                             {"state_digest", outcome.state_digest}};
  for (const auto& [key, value] : outcome.facts) registry::set(fields, key, value);
  return fields;
}

/// The command that continues a run.
std::string resume_command(const std::string& folder) {
  const std::filesystem::path path(folder);
  std::string text = "zs-train --resume " + path.filename().string();
  if (path.parent_path().string() != registry::place(""))
    text += " --registry " + shell_quoted({path.parent_path().string()});
  return text;
}

/// The cost of a plan, as lines to print next to it.
std::string cost_text(const plan::Plan& plan, const plan::Profile& profile) {
  const plan::Prediction predicted = plan::CostModel(profile, {}).predict(plan);
  std::string text = "# predicted: step " + to_rounded_text(predicted.seconds, 4) + " s, peak " +
                     to_bytes_text(predicted.memory) + ", sent by a rank " + to_bytes_text(predicted.sent) +
                     ", of it " + to_bytes_text(predicted.between_nodes) + " between nodes\n#";
  for (const auto& [lane, seconds] : predicted.parts) text += " " + lane + " " + to_rounded_text(seconds, 4) + " s";
  text += "\n";
  for (const std::string& what : predicted.unknown) text += "# not in the profile, and left out: " + what + "\n";
  return text;
}

/// The plans that a training has one after another, and what they cost.
std::string plans_text(const Trainer& trainer, const plan::Profile* profile) {
  std::string text;
  for (std::size_t i = 0; i < trainer.plans().size(); ++i) {
    const plan::Plan& plan = trainer.plans()[i];
    if (trainer.plans().size() > 1) text += "# behind " + to_text(trainer.passes()[i].behind) + " steps\n";
    text += plan::to_text(plan) + (profile ? cost_text(plan, *profile) : "");
  }
  return text;
}

/// The record of a run that continues: its place, and the settings, ranks and revision that differ from the recorded
/// ones. Its first command stays.
registry::Fields resumed_fields(const registry::Run& run, const config::Config& config, const registry::Fields& fields,
                                std::int64_t done) {
  registry::Fields now = registry::settings(config);
  for (const auto& [key, value] : fields) registry::set(now, key, value);
  const registry::Fields before = registry::read_record(run.folder());
  registry::Fields changed = {{"resumed_after_step", to_text(done)}};
  for (const auto& [key, value] : now) {
    if (registry::value(before, key) != value) registry::set(changed, key == "command" ? "resume_command" : key, value);
  }
  return changed;
}

/// The configuration of a continued run replaces the earlier one, which is kept as the configuration of the steps up to
/// `done`.
void keep_configuration(const registry::Run& run, const Start& start, std::int64_t done) {
  if (start.changes.empty()) return;
  const std::string path = run.folder() + "/config.yaml", before = run.folder() + "/config." + to_text(done) + ".yaml";
  if (!std::filesystem::exists(before)) write_file(before, read_regular(path, most_in_memory()).bytes);
  write_file(path, start.config.to_yaml());
}

/// A run's metrics as they were after step `done`.
metric::Run earlier_metrics(const std::string& folder, std::int64_t done) {
  const std::string path = folder + "/metrics.h5";
  metric::Run run = metric::read(path).runs.at(0);
  // A run that began with another's checkpoint has no first steps.
  const std::int64_t rows = done - parse_int(run.attribute("begun_after_step")).value_or(0);
  const metric::Column* const steps = run.records.find("step");
  if (!steps || rows < 1 || static_cast<std::int64_t>(run.records.rows()) < rows ||
      steps->integers()[static_cast<std::size_t>(rows - 1)] != done) {
    throw Error(path, 0, "does not hold the steps of the run up to " + to_text(done));
  }
  for (metric::Column& column : run.records.columns) column.truncate(static_cast<std::size_t>(rows));
  return run;
}

void warn_of(const cli::Args& args, const Start& start) {
  for (const std::string& warning : start.config.warnings()) cli::warn(args.command(), warning);
  for (const std::string& slow : {setup::idle_gpus(start.config.text("run.device")), unit::slow_products()}) {
    if (!slow.empty()) cli::warn(args.command(), slow);
  }
}

void require_same_start(comm::Group& group, const cli::Args& args, const Start& start) {
  const auto given = [](bool is) { return std::string(is ? "given" : "not given"); };
  setup::require_same_start(group, start.config,
                            {{"the device", start.device},
                             {"the run to go on with", start.run ? start.run->id() : "none"},
                             {"ZS_RUN", start.planned ? "set" : "not set"},
                             {"the task", start.task},
                             {"--timeout", args.text("timeout")},
                             {"the registry", registry::place(start.settings.output_dir)},
                             {"--debug_log", given(start.settings.digest_every == 1)}});
}

/// Tasks that need no ranks; false if the task is another. Rank 0 prints.
bool print_configuration(const cli::Args& args, const Start& start, bool first) {
  if (start.task != "--print_deepspeed_config" && start.task != "--print_model_config") return false;
  if (!first) return true;
  if (start.task == "--print_model_config") {
    print(model::make(start.settings.model).config_json);
    return true;
  }
  const DeepSpeedConfig config = deepspeed_config(start.settings);
  for (const std::string& what : config.remaining) cli::warn(args.command(), "the program must see to " + what);
  print(config.json);
  return true;
}

void print_calibration(comm::Group& group, const Start& start) {
  if (group.size() > 1) throw comm::SharedError("--calibrate measures one GPU: start one rank");
  if (start.device == "cpu") throw Error("--calibrate measures a GPU, and --device is cpu here");
  if (!start.settings.model.fused) throw Error("--calibrate measures the products of --compile, which is not set");
  print(calibrate(group, start.settings));
}

/// On rank 0, before the model is made: micro-steps in which ranks have no micro-batch, and memory that may not do.
void tell_early(const cli::Args& args, const Start& start, comm::Group& group) {
  const Settings& settings = start.settings;
  if (settings.short_ranks > 0) {
    cli::tell(args.command(), to_text(settings.micro_batches()) + " micro-batches a step on " +
                                  std::to_string(settings.ranks) + " ranks: " + std::to_string(settings.short_ranks) +
                                  (settings.short_ranks == 1 ? " has" : " have") + " none in the last of " +
                                  std::to_string(settings.micro_steps) + " micro-steps");
  }
  if (start.device != "cpu" || start.task == "--print_plan") return;
  const std::string word = setup::early_word(group, model::make(settings.model), settings, host_memory());
  if (!word.empty()) cli::tell(args.command(), word);
}

/// Tasks of a model that is not trained; false if the task is another. Rank 0 prints. COLLECTIVE.
bool print_untrained(const Start& start, Trainer& trainer, bool first) {
  std::string text;
  if (start.task == "--print_plan") {
    if (first) text = plans_text(trainer, start.cost ? start.settings.plan_profile.get() : nullptr);
  } else if (start.task == "--eval_only") {
    for (const std::string& line : trainer.evaluate()) text += line + "\n";
  } else {
    return false;
  }
  if (first) print(text);
  return true;
}

/// The attributes of a run's records. `before`: the records of the run that it continues, or null.
attribute::Facts recorded_attributes(const registry::Run& run, const Start& begun, const registry::Fields& fields,
                                     const std::string& host, std::int64_t done, const metric::Run* before) {
  attribute::Facts attributes = setup::configured(begun.config);
  attributes["run_id"] = run.id();
  for (const char* const name : {"command", "revision"}) attributes[name] = registry::value(fields, name);
  attributes["host"] = host;
  if (before) attributes["resumed_after_step"] = to_text(done);
  const std::string begun_after = before ? before->attribute("begun_after_step") : done > 0 ? to_text(done) : "";
  if (!begun_after.empty()) attributes["begun_after_step"] = begun_after;
  return attributes;
}

/// The end of a run that was trained: its status in the registry, and a line for people.
void finish(const cli::Args& args, const registry::Run& run, const Outcome& outcome, double wall_time) {
  if (outcome.stopped) {
    run.finish(registry::status::preempted, {{"steps_done", to_text(outcome.steps)}});
    cli::tell(args.command(),
              "stopped after step " + to_text(outcome.steps) + ", saved; resume: " + resume_command(run.folder()));
  } else if (!outcome.diverged.empty()) {
    registry::Fields result = result_fields(outcome, wall_time);
    registry::set(result, "steps_done", to_text(outcome.steps));
    registry::set(result, "error", outcome.diverged);
    run.finish(registry::status::diverged, result);
    cli::tell(args.command(), run.folder() + ": " + outcome.diverged + ": the training has diverged and ends here");
  } else {
    run.finish(registry::status::complete, result_fields(outcome, wall_time));
  }
}

}  // namespace

void Session::choose_checkpoint(Start& start) {
  comm::Group& group = ranks_.group();
  const std::string folder = start.run->folder();
  // Other nodes may see an older folder.
  const std::string newest =
      comm::broadcast(group, group.rank() == 0 ? checkpoint::latest(folder) : "", 0, "choice of the checkpoint");
  if (!newest.empty()) start.settings.checkpoint = newest;
  const std::string status = comm::broadcast(
      group, group.rank() == 0 ? registry::value(registry::read_record(folder), "status") : "", 0, "state of the run");
  start.settings.may_be_done = !newest.empty() && status != registry::status::complete;
  if (newest.empty() && !start.planned) throw comm::SharedError(folder + ": has no checkpoint to resume from");
  if (start.settings.checkpoint.empty()) return;
  const config::Entry* const steps = start.config.find("training.gradient_accumulation_steps");
  const bool asked = steps && steps->from == config::From::user;
  comm::together(group, "reading of " + start.settings.checkpoint, [&] {
    const auto progress = checkpoint::peek(start.settings.checkpoint);
    if (!progress) return;
    // Other ranks share the micro-batches that the run's steps have.
    if (!asked) start.settings.divide(progress->leaves);
    for (const Change& change : start.changes) {
      start.settings.notes.push_back(change.key + " is " + change.now + " from step " + to_text(progress->step + 1) +
                                     " on (" + change.origin + "), and was " + change.then);
    }
  });
}

Status Session::train(const cli::Args& args) {
  ranks_.start(args.real("timeout", 0.1, 1e9));
  const bool first = ranks_.group().rank() == 0;
  Start start;
  comm::together(ranks_.group(), "reading of the configuration",
                 [&] { start = train::start(args, ranks_.group().size()); });
  if (first) warn_of(args, start);
  train::require_same_start(ranks_.group(), args, start);
  if (print_configuration(args, start, first)) return Status::done;
  comm::Group& group = ranks_.use(start.device, start.settings.transport, start.settings.deterministic);
  comm::together(group, "choice of the kernels", [&] { setup::place_on(start.settings, group); });
  start.settings.engine.trains = start.task != "--eval_only";
  if (start.task == "--calibrate") {
    print_calibration(group, start);
    return Status::done;
  }
  std::optional<experiment::Lease> lease;
  if (start.run) {
    comm::together(group, "lease of " + start.run->folder(), [&] {
      if (!first || !start.task.empty()) return;
      lease.emplace(start.run->folder(), start.take_over);
      checkpoint::remove_leftovers(start.run->folder());
    });
    choose_checkpoint(start);
  }
  if (first) tell_early(args, start, group);
  Trainer trainer(group, start.settings);
  if (print_untrained(start, trainer, first)) return Status::done;
  if (!first) return status(trainer.run("", {}, {}));
  if (!start.save_initial.empty())
    save_initial(start.save_initial, trainer.model().units, start.settings.engine.seed, trainer.beginning());
  if (!start.dump_batches.empty()) {
    dump_batches(start.dump_batches, trainer.batches(), trainer.steps(), start.settings.micro_batches());
  }
  return record(args, start, lease, trainer);
}

Status Session::record(const cli::Args& args, const Start& begun, std::optional<experiment::Lease>& lease,
                       Trainer& trainer) {
  const Settings& settings = begun.settings;
  const std::optional<registry::Run>& resumed = begun.run;
  const auto start = Clock::now();
  const registry::Fields fields = {{"command", args.line()},
                                   {"revision", cli::version()},
                                   {"world_size", to_text(std::int64_t{ranks_.group().size()})}};
  const auto run =
      resumed ? *resumed : registry::Run::create(registry::place(settings.output_dir), begun.config, fields);
  if (!lease) lease.emplace(run.folder(), false);
  // Counts this run's own steps: the first checkpoint may be another run's.
  const bool goes_on = resumed && settings.checkpoint.starts_with(run.folder() + "/");
  const std::int64_t done = goes_on ? trainer.done() : 0;
  Log log(run, done);
  Metrics metrics(run, *lease);
  Display display(args.command(), run.folder() + "/run.log");
  if (resumed) run.begin(done, goes_on ? resumed_fields(run, begun.config, fields, done) : fields);
  metric::Run before;
  if (goes_on) {
    keep_configuration(run, begun, done);
    before = earlier_metrics(run.folder(), done);
  }
  attribute::Facts attributes = recorded_attributes(run, begun, fields, ranks_.group().host(0),
                                                    goes_on ? done : trainer.done(), goes_on ? &before : nullptr);
  Tracking tracking(settings, run);
  if (!tracking.fields().empty()) run.update(tracking.fields());
  for (const auto& [key, value] : tracking.fields()) attributes[key] = value;
  std::vector<metric::Writer*> writers = {&metrics};
  for (metric::Writer* const writer : tracking.writers()) writers.push_back(writer);
  const auto write_line = [&](const std::string& line) {
    if (metrics.due(false)) lease->check();
    log.write(line);
    display.log(line);
    tracking.output(line);
  };
  try {
    const Outcome outcome = trainer.run(
        run.folder(), attributes,
        {write_line, writers, [&](const metric::Table& records, std::int64_t steps) { display.step(records, steps); }},
        std::move(before.records));
    tracking.close(static_cast<int>(status(outcome)));
    display.end(outcome.final_loss, outcome.state_digest);
    if (!begun.results.empty()) write_results(begun.results, method_name(settings), outcome, trainer.records());
    finish(args, run, outcome, std::chrono::duration<double>(Clock::now() - start).count());
    return status(outcome);
  } catch (const std::exception& error) {
    // A run that is another's by now, or that was removed, is left alone.
    if (lease->held()) run.finish(registry::status::failed, {{"error", error.what()}});
    throw;
  }
}

}  // namespace zs::train
