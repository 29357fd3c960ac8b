// SPDX-License-Identifier: Apache-2.0
// A training run from settings to digest: the loop, its log lines and its metric stream.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "comm/group.hpp"
#include "metric/unit.hpp"
#include "model/model.hpp"
#include "setup/batches.hpp"
#include "setup/settings.hpp"
#include "train/evaluation.hpp"
#include "train/outcome.hpp"
#include "train/probing.hpp"

namespace zs::train {

using setup::Batches;
using setup::Part;
using setup::Settings;

class Trainer {
 public:
  /// Reads the data, creates model, plan and engine, and loads the checkpoint. Every rank throws the same zs::Error if
  /// settings, data and rank count do not match, or if ranks have different data or checkpoints. COLLECTIVE.
  Trainer(comm::Group& group, const Settings& settings);

  /// The plans of a step after passes, each with the step from which it applies.
  const std::vector<plan::Plan>& plans() const { return engine_->plans().all(); }
  const plan::Schedule& passes() const { return engine_->plans().schedule(); }
  std::int64_t steps() const { return steps_; }
  const model::Model& model() const { return model_; }
  /// The initial parameters; null for the units' own.
  const unit::Beginning& beginning() const { return settings_.engine.begin; }
  Batches& batches() { return batches_; }
  /// The evaluation on held-out data, as lines for people. COLLECTIVE.
  std::vector<std::string> evaluate();
  /// The step after which run() begins: 0, or the step of the checkpoint.
  std::int64_t done() const { return done_; }

  /// The records of all steps so far.
  const metric::Table& records() const { return run_.records; }

  /// Trains until the last step, a signal, or a step after which the training is no longer finite: that one is not
  /// saved. Writes checkpoints into `folder` (rank 0's counts). Facts known before the first step are added to
  /// `attributes`, and each is a `run: KEY=VALUE` line. `earlier`: records of earlier steps, to continue. COLLECTIVE.
  Outcome run(const std::string& folder, std::map<std::string, std::string> attributes, Sink sink,
              metric::Table earlier = {});

 private:
  comm::Group& group_;
  Settings settings_;
  Sink sink_;
  model::Model model_;
  Batches batches_;
  std::int64_t steps_, done_ = 0;
  bool several_nodes_;
  std::unique_ptr<zero::Engine> engine_;
  std::unique_ptr<Probing> probing_;
  metric::Run run_;
  std::string digest_, diverged_;                 // of Outcome
  std::map<std::string, std::string> evaluated_;  // facts of the newest evaluations

  bool on_gpu() const { return group_.device().kind != device::Device::Kind::cpu; }
  void load_checkpoint();
  Outcome train(const std::string& folder, std::map<std::string, std::string> attributes, Sink sink,
                metric::Table earlier);
  void describe();
  /// Logs the run's facts, and begins its metrics with the records of earlier steps.
  void begin_records();
  void make_columns();
  /// Evaluates if it is time, and writes the step's line and row. `ends`: no step follows; `saves`: a checkpoint does.
  void record_step(std::int64_t step, bool ends, bool saves);
  Outcome end_records(std::int64_t step, bool stopped);
  /// Writes a line, on the rank that has a log.
  void log(const std::string& line) const {
    if (sink_.log) sink_.log(line);
  }
  /// Returns true if a rank is asked to stop.
  bool train_step(std::int64_t step);
  /// Records the effects of passes as the run's attribute, and logs the passes from `step` on.
  void describe_plan();
  void tell_plan(std::int64_t step);
  /// The column that counts a step's tokens or images.
  const char* counted() const { return model_.takes_images() ? metric::kImages : "tokens"; }
  double learning_rate(std::int64_t step) const;
  checkpoint::Progress progress(std::int64_t step) const;
  Outcome outcome(bool stopped) const;
  Evaluation evaluate(Part part, bool last);
  void evaluate_all(bool last);
  void tell(const Evaluation& evaluation, Part part);
  std::vector<std::pair<std::string, std::string>> totals(const Outcome& outcome) const;
  bool finite_parameters();
};

}  // namespace zs::train
