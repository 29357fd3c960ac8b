// SPDX-License-Identifier: Apache-2.0
// Runs a model's training steps by a plan, on this rank. One executor for every stage; the arithmetic is always the
// same: gradients are summed by the canonical tree over all micro-batches of the step, and divided once.
#pragma once
#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "unit/unit.hpp"
#include "zero/loss_scaler.hpp"
#include "zero/memory.hpp"
#include "zero/optimizer_prefetcher.hpp"
#include "zero/plans.hpp"
#include "zero/sequence.hpp"
#include "zero/settings.hpp"
#include "zero/shared_experts.hpp"
#include "zero/state.hpp"
#include "zero/step_clock.hpp"

namespace zs::zero {

/// Observes a step from inside: for zs-verify and checkpoints. Calls come on every rank in the same order. The first
/// two are left out for micro-batches that the rank does not have. After its reduction a unit has no shard of the
/// parameters (plan::shard_gives_way).
struct Observer {
  std::function<void(int unit, int micro)> leaf{};  ///< the unit's leaf gradient is there
  std::function<void(int unit)> local_sum{};        ///< all micro-steps are added, nothing is reduced yet (stages 0, 1)
  std::function<void(int unit, int micro)> shard{};  ///< the micro-step's leaves of all ranks are summed (stages 2, 3)
  std::function<void()> reduced{};                   ///< all gradient sums are complete, nothing is updated yet
  std::function<bool()> stop{};  ///< at the end of a step: whether this rank is asked to stop (StepResult::stop)
};

/// Bytes.
struct Usage {
  std::int64_t allocated = 0, peak = 0;           ///< device memory, current and peak
  std::int64_t reserved = 0, peak_reserved = 0;   ///< the same of what a GPU's allocator holds
  std::int64_t sent = 0, sent_between_nodes = 0;  ///< in a step
  /// The larger of each.
  Usage or_more(const Usage& other) const {
    return {std::max(allocated, other.allocated), std::max(peak, other.peak),
            std::max(reserved, other.reserved),   std::max(peak_reserved, other.peak_reserved),
            std::max(sent, other.sent),           std::max(sent_between_nodes, other.sent_between_nodes)};
  }
};

/// Called after an operation that ran alone, with all earlier work complete. `bytes` are allocated on the device after
/// it.
using Timed = std::function<void(const plan::Op& op, double seconds, std::int64_t bytes)>;

struct StepResult {
  double loss = 0;          ///< mean over all micro-batches of the step, all ranks: the canonical tree, divided once
  double grad_norm = 0;     ///< global L2 norm of the mean gradient, before clipping
  double clipped_norm = 0;  ///< after
  float clip = 1;           ///< factor of the mean gradient: 1, or less where the norm is clipped
  double loss_scale = 1;    ///< factor of the loss (float16)
  std::vector<float> leaf_losses{};  ///< of all ranks, by leaf
  /// Bytes that this rank sent in the step (without observers and self-tests), and the part that went to other hosts.
  std::int64_t sent = 0, sent_between_nodes = 0;
  std::int64_t collectives = 0;  ///< the number of collectives for these
  /// The peak bytes of optimizer state, movable shards and kept inputs in device memory while a unit computed.
  std::int64_t held = 0;
  double seconds = 0;    ///< of the step, as StepClock counts them
  double observed = 0;   ///< seconds of these spent in an observer: copying gradients for a checkpoint
  bool skipped = false;  ///< the gradient was not finite and nothing was updated (float16)
  Usage most{};          ///< maximum over ranks, after the step
  bool stop = false;     ///< a rank is asked to stop
};

/// Receives the logits of each leaf of an evaluation, on the rank that computed it.
using LogitsSeen = std::function<void(std::int64_t leaf, const unit::Batch& batch, const at::Tensor& logits)>;

/// Returns the micro-batch of a leaf of the global step, or its chunk where sequences have chunks, on any rank.
using BatchOf = std::function<unit::Batch(std::int64_t leaf)>;

class Engine {
 public:
  /// Initializes the parameters. Throws zs::Error as Plans does. COLLECTIVE.
  Engine(comm::Group& group, const unit::Units& units, const Strategy& strategy, const Settings& settings);

  /// One optimizer step, by its plan. `step` counts from 1. REQUIRES: Settings::trains. COLLECTIVE.
  StepResult step(std::int64_t step, double learning_rate, const BatchOf& batch);

  /// Seconds of the last step that no step has counted (StepClock::rest): a GPU updates while the host continues.
  double rest_of_step() { return clock_.rest(); }

  /// Mean loss per sample over this number of micro-batches (they may differ in size) without dropout, summed in leaf
  /// order. REQUIRES: `seen` only if sequences are whole. COLLECTIVE.
  double evaluate(std::int64_t micro_batches, const BatchOf& batch, const LogitsSeen& seen = {});

  /// 128-bit hash (XXH3) of the float32 parameters in canonical order, 32 hex digits; throws zs::Error naming the
  /// ranks if they do not agree. COLLECTIVE.
  std::string digest();

  /// Times each operation of the following steps, which makes them slower; null: stops.
  void time(Timed timed) { timed_ = std::move(timed); }
  /// Sets the observer of the following steps.
  void observe(Observer observer) { observer_ = std::move(observer); }
  /// Gradients are sums over leaves of the scaled loss: times this they are the mean gradient.
  double gradient_scale() const { return 1.0 / (static_cast<double>(leaves()) * scaler_.scale()); }
  /// The global leaf that this rank computes in a micro-step, the first of its chunks; -1: none.
  std::int64_t leaf(int micro) const { return plan::leaf(plan().shape, group_.rank(), micro); }
  const LossScaler& scaler() const { return scaler_; }
  /// Optimizer updates so far: steps less those skipped.
  std::int64_t updates() const { return updates_; }
  /// Sets the counters from a checkpoint.
  void restore(std::int64_t updates, const LossScaler::State& scaler) { updates_ = updates, scaler_.restore(scaler); }
  bool trains() const { return settings_.trains; }
  /// Whether optimizer state is on a disk.
  bool on_disk() const { return settings_.offload.optimizer == Place::disk; }
  Optimizer& optimizer(std::size_t unit) { return *states_[unit].optimizer; }
  /// The update rule of a parameter.
  optimizer::Rule rule(std::size_t unit, const unit::Parameter& parameter) const {
    return zero::rule(settings_.optimizer, parameter, is_block(units_, unit));
  }

  Plans& plans() { return plans_; }
  /// The plan of the current step, or of the next.
  const plan::Plan& plan() const { return plans_.current(); }
  comm::Group& group() const { return group_; }
  /// Null where sequences are whole.
  const SharedSequence* sequence() const { return sequence_ ? &*sequence_ : nullptr; }
  const Settings& settings() const { return settings_; }
  const Memory& memory() const { return memory_; }
  const unit::Units& units() const { return units_; }
  std::vector<UnitState>& states() { return states_; }

 private:
  /// State shared by the operations of one run.
  struct Run {
    std::int64_t step = 0;
    double learning_rate = 0;
    const BatchOf* batch = nullptr;
    bool training = true;
    bool self_test = false;
    std::set<int> tested;                   // units whose parameters were tested
    std::vector<int> together;              // units whose gathers start with the next one
    at::Tensor* logits = nullptr;           // destination of the logits, or null
    std::vector<unit::Batch> batches;       // by micro-step, chunk by chunk
    std::vector<at::Tensor> device_losses;  // by micro-step, on their device; of several chunks [chunks]
    std::vector<float> losses;              // the same, read after all operations of the plan were issued
    std::function<std::int64_t(int micro)> leaf;
    std::optional<bool> kept;  // whether a first forward kept anything for the second, if it was to
    float scale = 1;           // gradient sum -> mean gradient
    StepResult result{};
  };

  comm::Group& group_;
  const unit::Units& units_;
  Settings settings_;
  Plans plans_;
  Memory memory_;
  unit::Units parts_;  // of units whose experts are divided; else null
  std::vector<UnitState> states_;
  std::unique_ptr<comm::Group> sharing_;  // of the ranks that share sequences with chunks, or divide experts
  std::optional<SharedExperts> experts_;
  std::optional<SharedSequence> sequence_;
  LossScaler scaler_;
  StepClock clock_;
  std::int64_t updates_ = 0;
  Observer observer_;
  Timed timed_;
  bool self_tested_ = false;                       // since the start
  std::optional<OptimizerPrefetcher> prefetcher_;  // for optimizer state that a GPU keeps in the host's memory

  struct Sent {
    std::int64_t total = 0, between_nodes = 0, collectives = 0;
  };
  Sent sent() const;
  static void add(StepResult& result, const Sent& before, const Sent& after, int sign);
  /// Runs `what` without counting its bytes for the step.
  template <typename What>
  void uncounted(Run& run, What what) {
    const Sent before = sent();
    what();
    add(run.result, before, sent(), -1);
  }
  void execute(const plan::Plan& plan, Run& run);
  void execute(const plan::Op& op, Run& run);
  void start_gather(const plan::Op& op, Run& run);
  void finish_reduce(const plan::Op& op, Run& run);
  std::int64_t held();
  void execute_timed(const plan::Op& op, Run& run);
  void forward(int unit, int micro, bool keep_graph, Run& run);
  void recompute(int unit, int micro, Run& run);
  void backward(int unit, int micro, Run& run);
  void norm(Run& run);
  static void read_losses(Run& run);
  void update(int unit, Run& run);
  at::Tensor compute(int unit, int micro, Run& run);
  /// Exchanges the losses by micro-step, memory, bytes and requests of all ranks at the end of a step.
  void exchange(StepResult& result, const std::vector<float>& losses);
  std::int64_t leaves() const { return plan().shape.leaves(); }
  int chunks() const { return plan().shape.chunks_of_rank(); }
  /// The computing form of a unit on this rank: the unit itself, or this rank's part of its experts.
  const unit::Unit& computed(std::size_t unit) const { return parts_[unit] ? *parts_[unit] : *units_[unit]; }
  /// The step of a unit, for its gradient.
  plan::Shape shape_of(int unit) const { return plan().shape.of(plan().shape.units[static_cast<std::size_t>(unit)]); }
  /// The number of ranks that divide the experts of a unit.
  int among(std::size_t unit) const { return plan().shape.units[unit].among; }
  void divide(std::size_t unit);
  /// Ranges within this rank's part of a unit; element 0 of the part is the unit's element first().
  Layout layout(std::size_t unit) const;
  std::int64_t first(std::size_t unit) const;
  /// COLLECTIVE.
  void add_state(std::size_t unit);
  double sum_of_squares();
};

}  // namespace zs::zero
