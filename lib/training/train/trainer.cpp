// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/host.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "checkpoint/foreign.hpp"
#include "comm/agree.hpp"
#include "comm/nodes.hpp"
#include "device/memory.hpp"
#include "kernel/calibration.hpp"
#include "model/peft.hpp"
#include "parse/step_line.hpp"
#include "setup/agreement.hpp"
#include "setup/beginning.hpp"
#include "setup/describe.hpp"
#include "setup/memory.hpp"
#include "setup/schedule.hpp"
#include "setup/signals.hpp"
#include "train/movement.hpp"
#include "train/profile.hpp"
#include "train/saving.hpp"
#include "zero/accounting.hpp"

namespace zs::train {
namespace {

void note_what_never_comes(Settings& settings, std::int64_t steps) {
  const auto note = [&](const std::string& name, std::int64_t value, const std::string& consequence) {
    if (value > steps)
      settings.notes.push_back(name + " is " + to_text(value) + ", and the training ends at step " + to_text(steps) +
                               ": " + consequence);
  };
  note("eval_steps", settings.eval_steps,
       settings.eval ? "it is evaluated after the last step only" : "it is never evaluated");
  note("save_steps", settings.save_steps,
       settings.save_final ? "the final checkpoint is the only one" : "no checkpoint is written");
  note("profile_steps", settings.profiled.first, "none is profiled");
  note("lr_warmup_steps", settings.schedule.warmup, "the learning rate never gets to learning_rate");
}

}  // namespace

Trainer::Trainer(comm::Group& group, const Settings& settings)
    : group_(group),
      settings_(settings),
      model_(model::make(settings.model)),
      batches_(read_batches(group, settings, model_)),
      steps_(batches_.steps()),
      several_nodes_(comm::ranks_of_first_node(group) < group.size()) {
  note_what_never_comes(settings_, steps_);
  for (const std::string& note : batches_.data().notes) settings_.notes.push_back(note);
  if (group_.device().kind == device::Device::Kind::cpu) require_memory(group_, model_, settings_, host_memory());
  set_arithmetic(group_, settings_);
  if (!settings_.save_pretrained.empty()) checkpoint::prepare_pretrained(group_, settings_.save_pretrained);
  if (settings_.checkpoint.empty()) settings_.engine.begin = beginning_of(group_, settings_, model_);
  try {
    engine_ = std::make_unique<zero::Engine>(group_, model_.units, settings_.strategy(), settings_.engine);
  } catch (...) {
    explain_memory(group_, model_, settings_);
    throw;
  }
  if (!settings_.checkpoint.empty()) load_checkpoint();
  engine_->plans().prepare(done_ + 1);
}

void Trainer::load_checkpoint() {
  const auto require_left = [&] {
    if (done_ > steps_ || (done_ == steps_ && !settings_.may_be_done)) {
      throw Error(settings_.checkpoint, 0,
                  "has " + to_text(done_) + " steps done, and they count: of " + to_text(steps_) +
                      " none is left. For as many more, set --max_steps " + to_text(done_ + steps_));
    }
  };
  bool foreign = false;
  comm::together(group_, "reading of " + settings_.checkpoint, [&] {
    const auto progress = checkpoint::peek(settings_.checkpoint);
    model::require_same(model_, settings_.checkpoint);
    model::require_same_factor(settings_.model.adaptation, settings_.checkpoint);
    foreign = !progress && checkpoint::is_foreign(settings_.checkpoint);
    if (!progress || !settings_.engine.trains) return;  // an evaluation takes the weights alone
    require_same(*progress, settings_, group_.size(), batches_.data().sha256);
    done_ = progress->step;
    require_left();
  });
  if (!foreign) {
    checkpoint::load(group_, *engine_, settings_.checkpoint);
    return;
  }
  checkpoint::Adopted adopted = checkpoint::adopt(group_, *engine_, settings_.checkpoint);
  done_ = adopted.step;
  std::ranges::move(adopted.notes, std::back_inserter(settings_.notes));
  comm::together(group_, "reading of " + settings_.checkpoint, require_left);
}

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
  if (!sink_.log) return;
  const plan::Plan& plan = engine_->plan();
  const std::string passes = joined(plan.passes);
  sink_.log("note: passes from step " + to_text(step) + " on: " + (passes.empty() ? "none" : passes));
  if (!settings_.verbose) return;
  for (const std::string& effect : plan.effects) sink_.log("note: pass " + effect);
}

Outcome Trainer::run(const std::string& folder, std::map<std::string, std::string> attributes, Sink sink,
                     metric::Table earlier) {
  try {
    return train(folder, std::move(attributes), std::move(sink), std::move(earlier));
  } catch (const std::exception& error) {
    if (probing_) probing_->failed(error.what());
    explain_memory(group_, model_, settings_);
    throw;
  }
}

Outcome Trainer::train(const std::string& folder, std::map<std::string, std::string> attributes, Sink sink,
                       metric::Table earlier) {
  sink_ = std::move(sink);
  run_ = {"", std::move(attributes), std::move(earlier)};
  describe();
  if (sink_.log) {
    for (const auto& [key, value] : run_.attributes) sink_.log("run: " + printable(key) + "=" + printable(value));
    for (const std::string& note : settings_.notes) sink_.log("note: " + printable(note));
  }
  if (settings_.verbose && !engine_->plan().passes.empty()) tell_plan(done_ + 1);
  for (metric::Writer* const writer : sink_.metrics) {
    writer->begin(run_.attribute("run_id"), run_.attributes);
    for (std::size_t row = 0; row < run_.records.rows(); ++row) metric::write_row(run_.records, row, *writer);
  }
  Saving saving(group_, *engine_, settings_, model_, folder);
  probing_ = std::make_unique<Probing>(group_, *engine_, settings_);
  Movement movement(group_, *engine_, settings_.model.adaptation.adapts());
  Measuring measuring(group_, *engine_, settings_, model_, done_);
  const ProfiledSteps profiled =
      settings_.profile ? profiled_steps(settings_.profiled, settings_.timing_warmup, done_, steps_) : ProfiledSteps{};
  Profile profile(group_, profiled, settings_.profile_dir.empty() ? folder : settings_.profile_dir);
  if (sink_.log && profiled.last > 0) {
    sink_.log("note: steps " + to_text(profiled.first) + " to " + to_text(profiled.last) +
              " are profiled, and take longer for it");
  }
  setup::catch_stop_signals();
  device::reset_peak(group_.device());
  std::string digest;
  std::int64_t step = done_;
  bool stopped = false;
  if (step == steps_) digest = engine_->digest();  // only the result was missing
  while (step < steps_ && !stopped && diverged_.empty()) {
    ++step;
    const bool last = step == steps_;
    saving.before(step, steps_,
                  {.leaf = probing_->sees_leaves() ? [this](int unit, int micro) { probing_->leaf(unit, micro); }
                                                   : decltype(zero::Observer::leaf)(),
                   .reduced = [&] { probing_->gradients(), movement.gradients(); }});
    if (engine_->plans().prepare(step)) tell_plan(step);
    measuring.before(step);
    profile.begin(step);
    saving.step_ended(train_step(step));
    profile.end(step);
    const std::string still = movement.after(run_.records.find("learning_rate")->reals().back(), last);
    if (!still.empty() && sink_.log) sink_.log("note: " + printable(still));
    const bool measured = measuring.after(step, run_.records.find("iteration_time")->reals().back(), folder);
    if (measured && sink_.log) sink_.log("note: the times of a step's operations are in " + folder + "/profile.json");
    const bool saves = saving.due(step, last) || saving.stopping();
    if (diverged_.empty() && (saves || last) && !finite_parameters())
      diverged_ = "a parameter is not finite after step " + to_text(step);
    const bool sound = diverged_.empty();
    stopped = saving.stopping() && !last && sound;
    const bool evaluates =
        sound && ((settings_.eval_steps > 0 && step % settings_.eval_steps == 0) || (settings_.eval && last));
    if (evaluates) evaluate_all(last);
    const bool digests = settings_.digest_every > 0 && step % settings_.digest_every == 0;
    if (last || stopped || !sound) run_.records.column("iteration_time").reals().back() += engine_->rest_of_step();
    if (digests || last || stopped || !sound) digest = engine_->digest();
    if (digests) run_.records.column("state_digest").texts().back() = digest;
    if (sink_.log &&
        (step == 1 || step % settings_.log_interval == 0 || last || stopped || !sound || evaluates || digests))
      sink_.log(parse::step_line(run_.records, run_.records.rows() - 1));
    // The metrics first: a checkpoint must never be ahead of them.
    for (metric::Writer* const writer : sink_.metrics) {
      metric::write_row(run_.records, run_.records.rows() - 1, *writer);
      writer->flush(saves);
    }
    // A checkpoint that is not finite must not replace one that is.
    if (sound) saving.after(progress(step), last);
    if (sink_.progress) sink_.progress(run_.records, steps_);
  }
  profile.finish();
  probing_->finish(stopped, diverged_);
  run_.attributes["state_digest"] = digest;
  const auto held = comm::exchange_values(group_, zero::state_bytes(*engine_), "exchange of memory use");
  const std::int64_t state_bytes = *std::max_element(held.begin(), held.end());
  run_.attributes["state_bytes"] = to_text(state_bytes);
  Outcome result = outcome(digest, stopped);
  result.facts = totals(result);
  for (const auto& [key, value] : result.facts) {
    run_.attributes[key] = value;
    if (sink_.log) sink_.log("run: " + printable(key) + "=" + printable(value));
  }
  if (const double rate = kernel::matrix_rate(matrix_format(settings_)); rate > 0) {
    const double tokens = result.throughput * static_cast<double>(model_.takes_images() ? model_.seq_length : 1);
    run_.attributes["mfu"] = to_rounded_text(model_.flops_per_token * tokens / group_.size() / rate, 3);
  }
  if (sink_.log) {
    if (const std::string why = batches_.cut_short(); !stopped && !why.empty()) sink_.log("note: " + why);
    sink_.log("Summary: steps: " + to_text(step) + " final_loss: " + to_plain_text(result.final_loss) +
              " iteration_time: " + to_plain_text(result.iteration_time) +
              (model_.takes_images() ? "" : " tokens_per_second: " + to_plain_text(result.throughput)) +
              " samples_per_second: " + to_plain_text(result.samples_per_second) +
              " alloc_mem: " + to_text(result.alloc_mem) + " peak_mem: " + to_text(result.peak_mem) + " state_bytes: " +
              to_text(state_bytes) + (run_.attributes.contains("mfu") ? " mfu: " + run_.attributes["mfu"] : ""));
    sink_.log("state_digest: " + digest);
  }
  for (metric::Writer* const writer : sink_.metrics) writer->finish(run_.attributes);
  return result;
}

double Trainer::learning_rate(std::int64_t step) const {
  // A step that loss scaling skips is not an update: the schedule waits for it.
  return setup::learning_rate(settings_.schedule, step - 1 - engine_->scaler().skipped(), steps_);
}

checkpoint::Progress Trainer::progress(std::int64_t step) const {
  return {.step = step,
          .leaves = settings_.micro_batches(),
          .batch_size = settings_.batch_size,
          .seq_length = settings_.model.seq_length,
          .seed = static_cast<std::int64_t>(settings_.engine.seed),
          .sampler_position = step * batches_.samples_per_step(),
          .learning_rate = run_.records.find("learning_rate")->reals().back(),
          .next_learning_rate = learning_rate(step + 1),
          .dataset_sha256 = batches_.data().sha256,
          .arithmetic = chosen_arithmetic(settings_)};
}

bool Trainer::train_step(std::int64_t step) {
  const double learning_rate = this->learning_rate(step);
  const zero::StepResult result = engine_->step(step, learning_rate, [&](std::int64_t leaf) {
    unit::Batch batch = batches_.training(step, leaf);
    probing_->batch(leaf, batches_.whole(batch));
    return batch;
  });
  probing_->after(result, learning_rate);

  metric::Table& records = run_.records;
  const auto integer = [&](const char* name, std::int64_t value) { records.column(name).integers().push_back(value); };
  const auto real = [&](const char* name, double value) { records.column(name).reals().push_back(value); };
  // The columns in the order of the log line; the first call makes them.
  if (records.columns.empty()) {
    for (const char* name : {"step", "epoch", "loss", "iteration_time", "alloc_mem", "peak_mem", "grad_norm",
                             "clipped_norm", "learning_rate", counted(), "comm_bytes"}) {
      records.column(name);
    }
    if (several_nodes_) records.column("comm_bytes_between_nodes");
    if (settings_.engine.scales()) records.column("loss_scale"), records.column("skipped");
    if (settings_.eval || settings_.eval_steps > 0) {
      records.column("valid_loss");
      if (model_.takes_images()) records.column("valid_accuracy");
    }
    if (settings_.digest_every > 0) records.column("state_digest");
    metric::set_loss_unit(records.columns);
  }
  integer("step", step);
  integer("epoch", batches_.epoch(step));
  real("loss", result.loss);
  real("iteration_time", result.seconds - result.observed);
  integer("alloc_mem", result.most.allocated);
  integer("peak_mem", result.most.peak);
  real("grad_norm", result.grad_norm);
  real("clipped_norm", result.clipped_norm);
  real("learning_rate", learning_rate);
  integer(counted(), model_.takes_images() ? batches_.samples_per_step() : batches_.tokens(step));
  integer("comm_bytes", result.most.sent);
  if (several_nodes_) integer("comm_bytes_between_nodes", result.most.sent_between_nodes);
  if (settings_.engine.scales()) {
    real("loss_scale", result.loss_scale);
    integer("skipped", engine_->scaler().skipped());  // so far
  }
  // A step that loss scaling skipped has updated nothing, and a smaller scale may do; but none follows the last.
  const bool loss = !std::isfinite(result.loss) && (!result.skipped || step == steps_);
  if (loss || (!std::isfinite(result.grad_norm) && !result.skipped)) {
    diverged_ = std::string("the ") + (loss ? "loss" : "gradient norm") + " is " +
                to_text(loss ? result.loss : result.grad_norm) + " at step " + to_text(step);
  }
  for (metric::Column& column : records.columns) column.pad(records.rows());
  return result.stop;
}

Outcome Trainer::outcome(const std::string& digest, bool stopped) const {
  const metric::Table& records = run_.records;
  const auto& times = records.find("iteration_time")->reals();
  const auto skipped = static_cast<std::size_t>(
      std::min<std::int64_t>(settings_.timing_warmup, static_cast<std::int64_t>(times.size()) - 1));
  const auto& counts = records.find(counted())->integers();
  double sum = 0, counted_sum = 0;
  for (std::size_t i = skipped; i < times.size(); ++i) sum += times[i], counted_sum += static_cast<double>(counts[i]);
  Outcome outcome;
  outcome.state_digest = digest;
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

bool Trainer::finite_parameters() {
  constexpr std::int64_t kPart = std::int64_t{16} << 20;  // elements: LibTorch copies the tensors that it checks
  bool finite = true;
  for (zero::UnitState& state : engine_->states()) {
    for (const at::Tensor& part : state.whole_parameters().split(kPart))
      finite = finite && at::isfinite(part).all().item<bool>();
  }
  return finite;
}

Evaluation Trainer::evaluate(Part part, bool last) {
  return train::evaluate(group_, *engine_, batches_, part, last ? settings_.dump_logits : "");
}

void Trainer::evaluate_all(bool last) {
  // If there are two parts, the test part comes last: its logits and classes are reported.
  const bool tests = last && batches_.micro_batches(Part::test) > 0;
  evaluated_.clear();
  for (const Part part : {Part::validation, Part::test}) {
    if (part == Part::test && !tests) continue;
    const Evaluation evaluation = evaluate(part, last && (part == Part::test || !tests));
    for (const auto& [key, value] : facts(evaluation, part, batches_.data().labels)) evaluated_[key] = value;
    if (last) tell(evaluation, part);
    if (part == Part::test) continue;
    evaluated_["final_valid_step"] = to_text(run_.records.column("step").integers().back());
    run_.records.column("valid_loss").reals().back() = evaluation.loss;
    if (!evaluation.classes.empty()) run_.records.column("valid_accuracy").reals().back() = evaluation.accuracy();
  }
}

void Trainer::tell(const Evaluation& evaluation, Part part) {
  if (!sink_.log) return;
  for (const std::string& line : lines(evaluation, part, batches_.data().labels)) sink_.log(line);
}

std::vector<std::string> Trainer::evaluate() {
  std::vector<std::string> all;
  for (const Part part : {Part::validation, Part::test}) {
    if (batches_.micro_batches(part) == 0) continue;
    const Evaluation evaluation = evaluate(part, part == Part::test || batches_.micro_batches(Part::test) == 0);
    for (std::string& line : lines(evaluation, part, batches_.data().labels)) all.push_back(std::move(line));
  }
  return all;
}

std::vector<std::pair<std::string, std::string>> Trainer::totals(const Outcome& outcome) const {
  std::vector<std::pair<std::string, std::string>> all(evaluated_.begin(), evaluated_.end());
  all.emplace_back("total_steps", to_text(outcome.steps));
  all.emplace_back("total_epochs", to_rounded_text(batches_.epochs(outcome.steps), 4));
  all.emplace_back("epoch_time", to_text(outcome.iteration_time * batches_.steps_per_epoch()));
  all.emplace_back("model_size_M", to_rounded_text(static_cast<double>(unit::numel(model_.units)) / 1e6, 4));
  all.emplace_back("samples_per_second", to_text(outcome.samples_per_second));
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
      all.emplace_back("train_loss_epoch." + to_text(number), to_text(sum.loss / static_cast<double>(sum.steps)));
  }
  return all;
}

}  // namespace zs::train
