// SPDX-License-Identifier: Apache-2.0
// A training run from settings to digest: the loop, its log lines and its metric stream.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "comm/group.hpp"
#include "metric/unit.hpp"
#include "metric/writer.hpp"
#include "model/model.hpp"
#include "setup/batches.hpp"
#include "setup/settings.hpp"
#include "train/evaluation.hpp"
#include "train/probing.hpp"

namespace zs::train {

using setup::Batches;
using setup::Part;
using setup::Settings;

/// Receives a run's output; called only on rank 0.
struct Sink {
  std::function<void(const std::string& line)> log;  ///< a line for the log, without its end
  std::vector<metric::Writer*> metrics;              ///< each gets every step; flush(true) before a checkpoint
  std::function<void(const metric::Table& records, std::int64_t steps)> progress;  ///< after every step
};

/// The result of a training.
struct Outcome {
  std::string state_digest;
  double final_loss = 0;                     ///< of the last step
  double valid_loss = 0;                     ///< of the last evaluation; absent_real() if there was none
  double iteration_time = 0;                 ///< s, mean without the first timing_warmup steps
  double throughput = 0;                     ///< tokens, or images, per second over the same steps
  double samples_per_second = 0;             ///< over the same steps
  std::int64_t alloc_mem = 0, peak_mem = 0;  ///< bytes, the maximum over ranks
  std::int64_t steps = 0;                    ///< done
  /// About the whole training, by the names of the attribute table: its size, its epochs, its evaluations.
  std::vector<std::pair<std::string, std::string>> facts{};
  bool stopped = false;  ///< by a signal, with everything saved
  std::string diverged;  ///< the quantity that is not finite, and its step: "the loss is nan at step 3"; or ""
};

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

  /// Trains until the last step, a signal, or a step after which the training is no
  /// longer finite: that one is not saved. Writes checkpoints into `folder` (rank 0's
  /// counts). Facts known before the first step are added to `attributes`, and each is a
  /// `run: KEY=VALUE` line. `earlier`: records of earlier steps, to continue. COLLECTIVE.
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
  std::string diverged_;                          // Outcome::diverged
  std::map<std::string, std::string> evaluated_;  // facts of the newest evaluations

  void load_checkpoint();
  Outcome train(const std::string& folder, std::map<std::string, std::string> attributes, Sink sink,
                metric::Table earlier);
  void describe();
  /// Returns true if a rank is asked to stop.
  bool train_step(std::int64_t step);
  /// Records the effects of passes as the run's attribute, and logs the passes from `step` on.
  void describe_plan();
  void tell_plan(std::int64_t step);
  /// The column that counts a step's tokens or images.
  const char* counted() const { return model_.takes_images() ? metric::kImages : "tokens"; }
  double learning_rate(std::int64_t step) const;
  checkpoint::Progress progress(std::int64_t step) const;
  Outcome outcome(const std::string& digest, bool stopped) const;
  Evaluation evaluate(Part part, bool last);
  void evaluate_all(bool last);
  void tell(const Evaluation& evaluation, Part part);
  std::vector<std::pair<std::string, std::string>> totals(const Outcome& outcome) const;
  bool finite_parameters();
};

}  // namespace zs::train
