// SPDX-License-Identifier: Apache-2.0
// A training's records: the facts of the run, a row and a log line for each step, and the summary at its end.
#include <algorithm>

#include "base/number.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "comm/pack.hpp"
#include "kernel/calibration.hpp"
#include "parse/step_line.hpp"
#include "setup/describe.hpp"
#include "setup/memory.hpp"
#include "train/trainer.hpp"
#include "zero/accounting.hpp"

namespace zs::train {

void Trainer::describe() {
  const auto number = [](auto value) { return to_text(static_cast<std::int64_t>(value)); };
  const auto some = [&](std::int64_t value) { return value > 0 ? number(value) : ""; };
  // Records the values that result for this model, these data and these ranks instead of the values in the
  // configuration.
  attribute::Facts known = {
      {"model.name", model_.name},
      {"model.num_layers", number(model_.num_layers)},
      {"model.parameters", number(unit::numel(model_.units))},
      {"model.trained",
       unit::trained(model_.units) < unit::numel(model_.units) ? number(unit::trained(model_.units)) : ""},
      {"model.active",
       unit::idle(model_.units) > 0 ? number(unit::numel(model_.units) - unit::idle(model_.units)) : ""},
      {"vocab_size", some(model_.vocab_size)},
      {"image_size", some(model_.image_size)},
      {"num_labels", some(model_.num_labels)},
      {"seq_length", number(settings_.model.seq_length)},
      {"kernels", settings_.model.fused ? "fused" : "plain"},
      {"dtype", setup::dtype_name(settings_.engine.dtype)},
      {"backend", settings_.backend == "deepspeed" ? "zero" : settings_.backend},
      {"zero_stage", number(settings_.stage)},
      {"world_size", number(group_.size())},
      {"gradient_accumulation_steps", number(settings_.micro_steps)},
      {"sequence_parallel", number(settings_.sequence)},
      {"sequence_chunks", number(settings_.chunks)},
      {"expert_parallel", number(settings_.experts)},
      {"batch_size", number(settings_.batch_size)},
      {"global_batch_size", number(batches_.samples_per_step())},
      {"passes", plan::to_text(passes())},
      {"expected_steps", number(steps_)},
      {"dataset", batches_.data().path},
      {"dataset_sha256", batches_.data().sha256},
      {"dataset_tokens", some(batches_.data().tokens)},
      {"tokenizer", model_.takes_images()         ? ""
                    : settings_.tokenizer.empty() ? "bytes"
                                                  : settings_.tokenizer},
      {"packing", model_.takes_images() ? "" : data::name(settings_.packing)},
      {"dataset_images", model_.takes_images() ? number(batches_.data().training->size()) : ""},
      {"steps_per_epoch", to_text(batches_.steps_per_epoch())},
      {"ideal_state_bytes", number(zero::ideal_state_bytes(*engine_))},
      {"ideal_comm_bytes", number(zero::ideal_comm_bytes(*engine_))}};
  if (const auto between = zero::ideal_bytes_between_nodes(*engine_); between && several_nodes_)
    known["ideal_comm_bytes_between_nodes"] = number(*between);
  known.merge(setup::arithmetic(group_.device(), settings_));
  known.merge(run_.attributes);
  std::erase_if(known, [](const auto& fact) { return fact.second.empty(); });
  run_.attributes = std::move(known);
  describe_plan();
}

void Trainer::describe_plan() {
  const std::string effects = joined(engine_->plan().effects, " | ");
  if (!effects.empty()) run_.attributes["pass_effects"] = effects;
}

void Trainer::tell_plan(std::int64_t step) {
  describe_plan();
  const plan::Plan& plan = engine_->plan();
  const std::string passes = joined(plan.passes);
  log("note: passes from step " + to_text(step) + " on: " + (passes.empty() ? "none" : passes));
  if (!settings_.verbose) return;
  for (const std::string& effect : plan.effects) log("note: pass " + effect);
}

void Trainer::begin_records() {
  describe();
  for (const auto& [key, value] : run_.attributes) log("run: " + printable(key) + "=" + printable(value));
  for (const std::string& note : settings_.notes) log("note: " + printable(note));
  if (settings_.verbose && !engine_->plan().passes.empty()) tell_plan(done_ + 1);
  for (metric::Writer* const writer : sink_.metrics) {
    writer->begin(run_.attribute("run_id"), run_.attributes);
    for (std::size_t row = 0; row < run_.records.rows(); ++row) metric::write_row(run_.records, row, *writer);
  }
}

/// The columns, in the order of the log line.
void Trainer::make_columns() {
  metric::Table& records = run_.records;
  for (const char* name : {"step", "epoch", "loss", "iteration_time", "alloc_mem", "peak_mem", "grad_norm",
                           "clipped_norm", "learning_rate", counted(), "comm_bytes"}) {
    records.column(name);
  }
  if (several_nodes_) records.column("comm_bytes_between_nodes");
  if (on_gpu()) records.column("reserved_mem"), records.column("peak_reserved_mem");
  if (settings_.engine.scales()) records.column("loss_scale"), records.column("skipped");
  if (settings_.eval || settings_.eval_steps > 0) {
    records.column("valid_loss");
    if (model_.takes_images()) records.column("valid_accuracy");
  }
  if (settings_.digest_every > 0) records.column("state_digest");
  metric::set_loss_unit(records.columns);
}

void Trainer::record_step(std::int64_t step, bool ends, bool saves) {
  const bool last = step == steps_;
  const bool evaluates =
      diverged_.empty() && ((settings_.eval_steps > 0 && step % settings_.eval_steps == 0) || (settings_.eval && last));
  if (evaluates) evaluate_all(last);
  const bool digests = settings_.digest_every > 0 && step % settings_.digest_every == 0;
  if (ends) run_.records.column("iteration_time").reals().back() += engine_->rest_of_step();
  if (digests || ends) digest_ = engine_->digest();
  if (digests) run_.records.column("state_digest").texts().back() = digest_;
  const std::size_t row = run_.records.rows() - 1;
  if (sink_.log && (step == 1 || step % settings_.log_interval == 0 || ends || evaluates || digests))
    sink_.log(parse::step_line(run_.records, row));
  // The metrics first: a checkpoint must never be ahead of them.
  for (metric::Writer* const writer : sink_.metrics) {
    metric::write_row(run_.records, row, *writer);
    writer->flush(saves);
  }
}

Outcome Trainer::end_records(std::int64_t step, bool stopped) {
  run_.attributes["state_digest"] = digest_;
  const auto held = comm::exchange_values(group_, zero::state_bytes(*engine_), "exchange of memory use");
  const std::string state_bytes = to_text(*std::ranges::max_element(held));
  run_.attributes["state_bytes"] = state_bytes;
  Outcome result = outcome(stopped);
  result.facts = totals(result);
  for (const auto& [key, value] : result.facts) {
    run_.attributes[key] = value;
    log("run: " + printable(key) + "=" + printable(value));
  }
  if (const double rate = kernel::matrix_rate(matrix_format(settings_)); rate > 0) {
    const double tokens = result.throughput * static_cast<double>(model_.takes_images() ? model_.seq_length : 1);
    run_.attributes["mfu"] = to_rounded_text(model_.flops_per_token * tokens / group_.size() / rate, 3);
  }
  if (const std::string why = batches_.cut_short(); !stopped && !why.empty()) log("note: " + why);
  log("Summary: steps: " + to_text(step) + " final_loss: " + to_plain_text(result.final_loss) +
      " iteration_time: " + to_plain_text(result.iteration_time) +
      (model_.takes_images() ? "" : " tokens_per_second: " + to_plain_text(result.throughput)) +
      " samples_per_second: " + to_plain_text(result.samples_per_second) + " alloc_mem: " + to_text(result.alloc_mem) +
      " peak_mem: " + to_text(result.peak_mem) + " state_bytes: " + state_bytes +
      (run_.attributes.contains("mfu") ? " mfu: " + run_.attributes["mfu"] : ""));
  log("state_digest: " + digest_);
  for (metric::Writer* const writer : sink_.metrics) writer->finish(run_.attributes);
  return result;
}

Outcome Trainer::outcome(bool stopped) const {
  const metric::Table& records = run_.records;
  const auto& times = records.find("iteration_time")->reals();
  const auto skipped = static_cast<std::size_t>(std::min<std::int64_t>(settings_.timing_warmup, std::ssize(times) - 1));
  const auto& counts = records.find(counted())->integers();
  double sum = 0, counted_sum = 0;
  for (std::size_t i = skipped; i < times.size(); ++i) sum += times[i], counted_sum += static_cast<double>(counts[i]);
  Outcome outcome;
  outcome.state_digest = digest_;
  outcome.stopped = stopped;
  outcome.diverged = diverged_;
  outcome.steps = records.find("step")->integers().back();
  outcome.final_loss = records.find("loss")->reals().back();
  outcome.valid_loss = metric::absent_real();
  if (const metric::Column* const valid = records.find("valid_loss")) {
    for (const double loss : valid->reals()) outcome.valid_loss = metric::is_absent(loss) ? outcome.valid_loss : loss;
  }
  outcome.iteration_time = sum / static_cast<double>(times.size() - skipped);
  outcome.throughput = sum > 0 ? counted_sum / sum : 0;
  outcome.samples_per_second = static_cast<double>(batches_.samples_per_step()) / outcome.iteration_time;
  outcome.alloc_mem = records.find("alloc_mem")->integers().back();
  outcome.peak_mem = records.find("peak_mem")->integers().back();
  return outcome;
}

void Trainer::tell(const Evaluation& evaluation, Part part) {
  for (const std::string& line : lines(evaluation, part, batches_.data().labels)) log(line);
}

std::vector<std::pair<std::string, std::string>> Trainer::totals(const Outcome& outcome) const {
  std::vector<std::pair<std::string, std::string>> results(evaluated_.begin(), evaluated_.end());
  results.emplace_back("total_steps", to_text(outcome.steps));
  results.emplace_back("total_epochs", to_rounded_text(batches_.epochs(outcome.steps), 4));
  results.emplace_back("epoch_time", to_text(outcome.iteration_time * batches_.steps_per_epoch()));
  results.emplace_back("model_size_M", to_rounded_text(static_cast<double>(unit::numel(model_.units)) / 1e6, 4));
  results.emplace_back("samples_per_second", to_text(outcome.samples_per_second));
  // The mean of each epoch that was begun, over its steps.
  struct Sum {
    double loss = 0;
    std::int64_t steps = 0;
  };
  std::map<std::int64_t, Sum> epochs;
  const auto& epoch = run_.records.find("epoch")->integers();
  const auto& loss = run_.records.find("loss")->reals();
  for (std::size_t i = 0; i < epoch.size(); ++i) epochs[epoch[i]].loss += loss[i], ++epochs[epoch[i]].steps;
  if (epochs.size() > 1) {
    for (const auto& [number, sum] : epochs)
      results.emplace_back("train_loss_epoch." + to_text(number), to_text(sum.loss / static_cast<double>(sum.steps)));
  }
  return results;
}

}  // namespace zs::train
