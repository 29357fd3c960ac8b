// SPDX-License-Identifier: Apache-2.0
// Runs a model's training steps as a plan says, on this rank. One executor for every stage; the arithmetic is the same
// in all of them: gradients summed by the canonical tree over all micro-batches of the step, divided once.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "plan/pass.hpp"
#include "plan/schedule.hpp"
#include "unit/unit.hpp"
#include "zero/ahead.hpp"
#include "zero/loss_scaler.hpp"
#include "zero/state.hpp"

namespace zs::zero {

/// Sees a step from inside: for zs-verify and checkpoints. All calls come on every rank in the same order.
struct Observer {
  std::function<void(int unit, int micro)> leaf{};  ///< the unit's leaf gradient is there
  std::function<void(int unit)> local_sum{};        ///< all micro-steps are added, nothing is reduced yet (stages 0, 1)
  std::function<void(int unit, int micro)> shard{};  ///< the micro-step's leaves of all ranks are summed (stages 2, 3)
  std::function<void()> reduced{};                   ///< all gradient sums are there, nothing is updated yet
};

/// Where state lies that is not in use.
struct Offload {
  Place optimizer = Place::device;   ///< moments, and masters beside 16-bit parameters; not with use_torch_adam
  Place parameters = Place::device;  ///< shards of stage 3
  std::string nvme_path{};           ///< folder for what is on a disk
  Place passes = Place::host;        ///< where passes move to what is in device memory between steps
};

/// What of ZeRO++ stage 3 does.
struct ZeroPlusPlus {
  int secondary = 0;  ///< ranks of a group that keeps the parameters once more, divided among them (hpZ); 0: none
  bool quantized_weights = false, quantized_gradients = false;
  std::int64_t self_test_every = 0;  ///< steps between self-tests of what travels as integers; 0: the first one alone
};

struct Settings {
  bool trains = true;  ///< false: the model is evaluated alone, and no moments are kept
  AdamW adamw{};
  bool use_torch_adam = false;  ///< update with torch::optim::AdamW itself
  double max_grad_norm = 0;     ///< clip the global norm to this; 0 for none
  bool decay_all = true;        ///< weight decay on every parameter; false leaves biases and norms out
  at::ScalarType dtype = at::kFloat;
  at::ScalarType autocast = at::kFloat;  ///< of matrix products, with float32 parameters; float32: none
  LossScaling loss_scaling{};            ///< of float16
  /// Whether the loss is scaled, and a step whose gradient is not finite skipped.
  bool scales() const { return dtype == at::kHalf || autocast == at::kHalf; }
  std::uint64_t seed = 1;
  Offload offload{};
  ZeroPlusPlus zeropp{};
  /// Only rank and micro-step counts whose sums have the same bits in every stage and on every number of ranks: powers
  /// of two. Without it any count runs, and repeats its own bits alone.
  bool exact = true;
  unit::Beginning begin{};  ///< null: every unit's own initial values, by the seed
};

/// An operation that has run alone: what was given to the device before it was done, and so is it. `bytes` are
/// allocated on the device behind it.
using Timed = std::function<void(const plan::Op& op, double seconds, std::int64_t bytes)>;

/// How a step is divided among ranks and in time.
struct Strategy {
  int stage = 0;
  int micro_steps = 1;
  bool activation_checkpointing = false;
  plan::Schedule passes{};  ///< over the plan; empty: none
  plan::Budget budget{};    ///< what they may use
};

struct StepResult {
  double loss = 0;          ///< mean over all micro-batches of the step, all ranks: the canonical tree, divided once
  double grad_norm = 0;     ///< global L2 norm of the mean gradient, before clipping
  double clipped_norm = 0;  ///< after
  double loss_scale = 1;    ///< what the loss was multiplied with (float16)
  std::vector<float> leaf_losses{};  ///< of all ranks, by leaf
  /// Bytes that this rank sent for the step (what an observer or a self-test sends is not counted), and those of them
  /// that went to another host.
  std::int64_t sent = 0, sent_between_nodes = 0;
  std::int64_t collectives = 0;  ///< by which it sent them
  /// The most bytes of optimizer state, shards that move and kept inputs that were in device memory at one time while
  /// a unit computed.
  std::int64_t held = 0;
  double observed = 0;   ///< seconds that an observer took: copying gradients for a checkpoint
  bool skipped = false;  ///< the gradient was not finite and nothing was updated (float16)
};

/// Sees what the last unit compares with the targets: of each leaf of an evaluation, on the rank that computed it.
using LogitsSeen = std::function<void(std::int64_t leaf, const unit::Batch& batch, const at::Tensor& logits)>;

/// The micro-batch that belongs to a leaf of the global step, whoever asks.
using BatchOf = std::function<unit::Batch(std::int64_t leaf)>;

class Engine {
 public:
  /// Parameters get their initial values. Throws zs::Error if sums would not be exact and must be (ranks not a power of
  /// two up to kTiles, micro-steps not a power of two), if the ranks do not have the same plans, and as plan::compile
  /// does. COLLECTIVE.
  Engine(comm::Group& group, const unit::Units& units, const Strategy& strategy, const Settings& settings);

  /// Takes the plan that the schedule of passes has for a step; true if it is another than before.
  bool prepare(std::int64_t step);
  /// What the operations of a step take, for those entries of the schedule that begin behind the first step: from now
  /// on their plans are made by it. COLLECTIVE: the same on every rank.
  void measured(std::shared_ptr<const plan::Profile> profile);

  /// One optimizer step, by the plan that is for it. `step` counts from 1. REQUIRES: Settings::trains. COLLECTIVE.
  StepResult step(std::int64_t step, double learning_rate, const BatchOf& batch);

  /// Mean loss per sample over `leaves` micro-batches (they may differ in size) without dropout, summed in leaf order.
  /// COLLECTIVE.
  double evaluate(std::int64_t leaves, const BatchOf& batch, const LogitsSeen& seen = {});

  /// 128-bit hash (XXH3) of the float32 parameters in canonical order, 32 hex digits; throws zs::Error naming the
  /// ranks if they do not agree. COLLECTIVE.
  std::string digest();

  /// Bytes of model state that this rank has allocated in device memory: parameters, gradients, optimizer state, and
  /// the buffers in which parameters are gathered, gradients summed, and what is offloaded is used. After a step it is
  /// the peak of training.
  std::int64_t state_bytes();
  /// Bytes of what is offloaded.
  std::int64_t offloaded_bytes() const;
  /// What the formulas of plan say of parameters, gradients and optimizer state alone, and of a step before any pass.
  double ideal_state_bytes() const;
  double ideal_comm_bytes() const;
  /// The same of bytes to other nodes; nothing where ranks are not spread evenly over nodes, in order.
  std::optional<double> ideal_bytes_between_nodes() const;

  /// Times each operation of the steps to come, which makes them slower; null: no longer.
  void time(Timed timed) { timed_ = std::move(timed); }
  /// Sets who sees the steps to come.
  void observe(Observer observer) { observer_ = std::move(observer); }
  /// Gradients are sums over leaves of the scaled loss: times this they are the mean gradient.
  double gradient_scale() const { return 1.0 / (static_cast<double>(leaves()) * scaler_.scale()); }
  /// The global leaf that this rank computes in a micro-step.
  std::int64_t leaf(int micro) const { return plan::leaf(plan_.shape, group_.rank(), micro); }
  const LossScaler& scaler() const { return scaler_; }
  /// Optimizer updates so far: steps less those skipped.
  std::int64_t updates() const { return updates_; }
  /// Sets the counters from a checkpoint.
  void restore(std::int64_t updates, const LossScaler::State& scaler) { updates_ = updates, scaler_.restore(scaler); }
  bool trains() const { return settings_.trains; }
  /// Whether optimizer state lies on a disk.
  bool on_disk() const { return settings_.offload.optimizer == Place::disk; }
  Optimizer& optimizer(std::size_t unit) { return *states_[unit].optimizer; }

  /// The plan of the step under way, or to come; and those of all entries of the schedule.
  const plan::Plan& plan() const { return plan_; }
  const std::vector<plan::Plan>& plans() const { return plans_; }
  const plan::Schedule& schedule() const { return schedule_; }
  const unit::Units& units() const { return units_; }
  std::vector<UnitState>& states() { return states_; }

 private:
  /// What the operations of one run share.
  struct Run {
    std::int64_t step = 0;
    double learning_rate = 0;
    const BatchOf* batch = nullptr;
    bool training = true;
    bool self_test = false;
    std::set<int> tested;                   // units whose parameters were
    std::vector<int> together;              // units whose gathers begin with the next one
    at::Tensor* logits = nullptr;           // where they are wanted
    std::vector<unit::Batch> batches;       // by micro-step
    std::vector<at::Tensor> device_losses;  // by micro-step, where they were computed
    std::vector<float> losses;              // the same, read when the plan has been given out whole
    std::function<std::int64_t(int micro)> leaf;
    float clip = 1;
    float scale = 1;  // gradient sum -> mean gradient
    StepResult result{};
  };

  comm::Group& group_;
  const unit::Units& units_;
  plan::Schedule schedule_;
  plan::Budget budget_;
  std::vector<plan::Plan> plans_;  // by entry of the schedule
  std::size_t at_ = 0;             // the entry whose plan is
  plan::Plan plan_;
  bool other_plan_ = false;  // since prepare()
  Settings settings_;
  Pool pool_;
  std::unique_ptr<comm::Group> secondary_group_;  // of ranks that share a secondary partition, or null
  std::optional<Pool> secondary_pool_;
  std::unique_ptr<Store> optimizer_store_, parameter_store_, input_store_;  // null: in device memory
  std::vector<UnitState> states_;
  LossScaler scaler_;
  std::int64_t updates_ = 0;
  Observer observer_;
  Timed timed_;
  bool self_tested_ = false;    // since the start
  std::optional<Ahead> ahead_;  // of optimizer state in the host's memory beside a GPU

  struct Sent {
    std::int64_t all = 0, between_nodes = 0, collectives = 0;
  };
  Sent sent() const;
  static void add(StepResult& result, const Sent& before, const Sent& after, int sign);
  /// Runs `what`, whose bytes do not count for the step.
  template <typename What>
  void uncounted(Run& run, What what) {
    const Sent before = sent();
    what();
    add(run.result, before, sent(), -1);
  }
  void execute(const plan::Plan& plan, Run& run);
  void execute(const plan::Op& op, Run& run);
  void start_gather(const plan::Op& op, Run& run);
  void require_same_plans();
  /// Where what an operation moves lies while it is away: `offloaded` if that is not device memory, else where the
  /// passes move it, if one of the plans does.
  std::unique_ptr<Store> store(Place offloaded, plan::Kind moves) const;
  std::int64_t held();
  void execute_timed(const plan::Op& op, Run& run);
  void forward(int unit, int micro, bool keep_graph, Run& run);
  void recompute(int unit, int micro, Run& run);
  void backward(int unit, int micro);
  void norm(Run& run);
  static void read_losses(Run& run);
  void update(int unit, Run& run);
  at::Tensor compute(int unit, int micro, Run& run);
  std::vector<float> gather_losses(const Run& run, std::int64_t leaves);
  std::int64_t leaves() const { return static_cast<std::int64_t>(group_.size()) * plan_.shape.micro_steps; }
};

/// The engine of a strategy: its plan after passes. Throws as Engine and plan::compile do. COLLECTIVE.
std::unique_ptr<Engine> make_engine(comm::Group& group, const unit::Units& units, const Strategy& strategy,
                                    const Settings& settings);

/// True if sums over so many ranks and micro-steps have the same bits in every stage and however they are spread.
bool exact_sums(int ranks, int micro_steps);

}  // namespace zs::zero
