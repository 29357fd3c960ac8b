// SPDX-License-Identifier: Apache-2.0
#include "train/trainer.hpp"

#include <ATen/Parallel.h>

#include <cmath>

#include "base/error.hpp"
#include "base/host.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "checkpoint/foreign.hpp"
#include "comm/agree.hpp"
#include "comm/nodes.hpp"
#include "device/memory.hpp"
#include "model/peft.hpp"
#include "setup/agreement.hpp"
#include "setup/beginning.hpp"
#include "setup/describe.hpp"
#include "setup/memory.hpp"
#include "setup/schedule.hpp"
#include "setup/signals.hpp"
#include "train/movement.hpp"
#include "train/profile.hpp"
#include "train/saving.hpp"

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
  if (!on_gpu()) require_memory(group_, model_, settings_, host_memory());
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
  begin_records();
  Saving saving(group_, *engine_, settings_, model_, folder);
  probing_ = std::make_unique<Probing>(group_, *engine_, settings_);
  Movement movement(group_, *engine_, settings_.model.adaptation.adapts());
  Measuring measuring(group_, *engine_, settings_, model_, done_);
  const ProfiledSteps profiled =
      settings_.profile ? profiled_steps(settings_.profiled, settings_.timing_warmup, done_, steps_) : ProfiledSteps{};
  Profile profile(group_, profiled, settings_.profile_dir.empty() ? folder : settings_.profile_dir);
  if (profiled.last > 0)
    log("note: steps " + to_text(profiled.first) + " to " + to_text(profiled.last) +
        " are profiled, and take longer for it");
  setup::catch_stop_signals();
  device::reset_peak(group_.device());
  std::int64_t step = done_;
  bool stopped = false;
  if (step == steps_) digest_ = engine_->digest();  // only the result was missing
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
    if (!still.empty()) log("note: " + printable(still));
    if (measuring.after(step, run_.records.find("iteration_time")->reals().back(), folder))
      log("note: the times of a step's operations are in " + folder + "/profile.json");
    const bool saves = saving.due(step, last) || saving.stopping();
    if (diverged_.empty() && (saves || last) && !finite_parameters())
      diverged_ = "a parameter is not finite after step " + to_text(step);
    const bool sound = diverged_.empty();
    stopped = saving.stopping() && !last && sound;
    record_step(step, last || stopped || !sound, saves);
    // A checkpoint that is not finite must not replace one that is.
    if (sound) saving.after(progress(step), last);
    if (sink_.progress) sink_.progress(run_.records, steps_);
  }
  profile.finish();
  probing_->finish(stopped, diverged_);
  return end_records(step, stopped);
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
  if (records.columns.empty()) make_columns();
  integer("step", step);
  integer("epoch", batches_.epoch(step));
  real("loss", result.loss);
  real("iteration_time", result.seconds - result.observed);
  integer("alloc_mem", result.most.allocated);
  integer("peak_mem", result.most.peak);
  if (on_gpu()) integer("reserved_mem", result.most.reserved), integer("peak_reserved_mem", result.most.peak_reserved);
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

std::vector<std::string> Trainer::evaluate() {
  std::vector<std::string> printed;
  for (const Part part : {Part::validation, Part::test}) {
    if (batches_.micro_batches(part) == 0) continue;
    const Evaluation evaluation = evaluate(part, part == Part::test || batches_.micro_batches(Part::test) == 0);
    for (std::string& line : lines(evaluation, part, batches_.data().labels)) printed.push_back(std::move(line));
  }
  return printed;
}

}  // namespace zs::train
