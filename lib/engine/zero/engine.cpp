// SPDX-License-Identifier: Apache-2.0
#include "zero/engine.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <future>

#include "base/error.hpp"
#include "comm/agree.hpp"
#include "comm/nodes.hpp"
#include "device/tensor.hpp"
#include "device/tree.hpp"
#include "zero/norm.hpp"

namespace zs::zero {
namespace {

bool exact_ranks(int ranks) { return ranks <= kTiles && std::has_single_bit(static_cast<unsigned>(ranks)); }
bool exact_micro_steps(int micro_steps) { return std::has_single_bit(static_cast<unsigned>(micro_steps)); }

void require_exact(int ranks, int micro_steps) {
  const std::string remedy = "; --reduction any runs without that promise";
  if (!exact_ranks(ranks)) {
    throw Error("exact sums need a power of two of ranks (1, 2, 4, 8 ... " + std::to_string(kTiles) + "), not " +
                std::to_string(ranks) + remedy);
  }
  if (!exact_micro_steps(micro_steps)) {
    throw Error("exact sums need a power of two of gradient accumulation steps (1, 2, 4, 8 ...), not " +
                std::to_string(micro_steps) + remedy);
  }
}

/// What of ZeRO++ the ranks cannot do.
void require_divisible(const plan::Shape& shape) {
  if (shape.secondary > 0 && shape.ranks % shape.secondary != 0)
    throw Error("a secondary partition of " + std::to_string(shape.secondary) + " ranks does not divide " +
                std::to_string(shape.ranks) + " ranks: set zero_hpz_partition_size to the ranks of a node");
  const bool integers = shape.quantized_weights || shape.quantized_gradients;
  if (integers && !exact_ranks(shape.ranks))
    throw Error("quantized collectives need a power of two of ranks (1, 2, 4, 8 ... " + std::to_string(kTiles) +
                "), not " + std::to_string(shape.ranks) +
                ": leave out zero_quantized_weights and zero_quantized_gradients");
}

/// Forward alone, of one micro-batch a rank.
plan::Plan evaluation_plan(const plan::Plan& training) {
  plan::Shape shape = training.shape;
  shape.micro_steps = 1;
  shape.secondary = 0;  // each unit is gathered once
  plan::Plan plan = plan::baseline(shape);
  const auto loss = std::find_if(plan.ops.begin(), plan.ops.end(),
                                 [last = static_cast<int>(shape.units.size()) - 1](const plan::Op& op) {
                                   return plan::computes(op.kind) && op.unit == last;
                                 });
  plan.ops.erase(loss + 1, plan.ops.end());
  // Nor are shards wanted that are on their way for what was cut.
  for (std::size_t i = 0; i < plan.ops.size();) {
    const bool wanted = std::find(plan.ops.begin() + static_cast<std::ptrdiff_t>(i), plan.ops.end(),
                                  plan::Op{plan::Kind::gather, plan.ops[i].unit, -1}) != plan.ops.end();
    if (plan.ops[i].kind == plan::Kind::load_shard && !wanted)
      plan.ops.erase(plan.ops.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
  // Nor what the cut left gathered.
  std::vector<bool> whole(shape.units.size());
  for (const plan::Op& op : plan.ops) {
    if (op.kind == plan::Kind::gather_wait) whole[static_cast<std::size_t>(op.unit)] = true;
    if (op.kind == plan::Kind::release) whole[static_cast<std::size_t>(op.unit)] = false;
  }
  for (std::size_t unit = 0; unit < whole.size(); ++unit) {
    if (whole[unit]) plan.ops.push_back({plan::Kind::release, static_cast<int>(unit), -1});
  }
  return plan;
}

plan::Shape shape_of(const comm::Group& group, const unit::Units& units, const Strategy& strategy,
                     const Settings& settings) {
  plan::Shape shape{{}, strategy.stage, group.size(), strategy.micro_steps, strategy.activation_checkpointing};
  shape.offload_optimizer = settings.offload.optimizer != Place::device;
  shape.offload_parameters = settings.offload.parameters != Place::device;
  shape.secondary = settings.zeropp.secondary;
  shape.quantized_weights = settings.zeropp.quantized_weights;
  shape.quantized_gradients = settings.zeropp.quantized_gradients;
  for (const auto& unit : units) shape.units.push_back({unit->name(), unit->numel(), unit->tied_to()});
  return shape;
}

/// The initial values of units in their order. Beside a GPU some are drawn ahead, in the host's memory.
class InitialValues {
 public:
  InitialValues(const unit::Units& units, std::uint64_t seed, std::size_t at_once)
      : units_(units), seed_(seed), at_once_(at_once) {}
  at::Tensor next() {
    for (; drawn_.size() < at_once_ && begun_ < units_.size(); ++begun_) {
      drawn_.push_back(std::async(at_once_ > 1 ? std::launch::async : std::launch::deferred, [this, at = begun_] {
        const at::Tensor flat = at::empty({units_[at]->numel()});
        unit::initialise(*units_[at], seed_, flat);
        return flat;
      }));
    }
    const at::Tensor values = drawn_.front().get();
    drawn_.pop_front();
    return values;
  }

 private:
  const unit::Units& units_;
  std::uint64_t seed_;
  std::size_t at_once_, begun_ = 0;
  std::deque<std::future<at::Tensor>> drawn_;
};

std::vector<plan::Plan> plans_of(const plan::Shape& shape, const plan::Schedule& schedule, const plan::Budget& budget) {
  const plan::Plan baseline = plan::baseline(shape);
  std::vector<plan::Plan> plans;
  for (const plan::Scheduled& entry : schedule) plans.push_back(plan::compile(baseline, entry.passes, budget));
  return plans;
}

}  // namespace

bool exact_sums(int ranks, int micro_steps) { return exact_ranks(ranks) && exact_micro_steps(micro_steps); }

std::unique_ptr<Engine> make_engine(comm::Group& group, const unit::Units& units, const Strategy& strategy,
                                    const Settings& settings) {
  return std::make_unique<Engine>(group, units, strategy, settings);
}

Engine::Engine(comm::Group& group, const unit::Units& units, const Strategy& strategy, const Settings& settings)
    : group_(group),
      units_(units),
      schedule_(strategy.passes.empty() ? plan::from_the_start({}) : strategy.passes),
      budget_(strategy.budget),
      plans_(plans_of(shape_of(group, units, strategy, settings), schedule_, budget_)),
      plan_(plans_.front()),
      settings_(settings),
      pool_(group),
      optimizer_store_(settings.trains ? store(settings.offload.optimizer, plan::Kind::store) : nullptr),
      parameter_store_(store(settings.offload.parameters, plan::Kind::store_shard)),
      input_store_(store(Place::device, plan::Kind::store_input)),
      scaler_(settings.scales(), settings.loss_scaling) {
  const plan::Shape& shape = plan_.shape;
  if (settings.exact) require_exact(group.size(), shape.micro_steps);
  require_divisible(shape);
  for (const plan::Plan& plan : plans_) plan::check(plan);
  require_same_plans();
  const device::Device device = group.device();
  if (optimizer_store_ && settings.offload.optimizer == Place::host && device.kind != device::Device::Kind::cpu)
    ahead_.emplace(*optimizer_store_, [device] { return device::statistics(device).allocated; });
  if (shape.secondary > 0) {
    secondary_group_ = group.split(group.rank() / shape.secondary, "ranks of a secondary partition");
    secondary_pool_.emplace(*secondary_group_);
  }
  const Home state_home{optimizer_store_.get(), !settings.trains || settings.offload.optimizer == Place::device},
      shard_home{parameter_store_.get(), settings.offload.parameters == Place::device};
  states_.reserve(units.size());
  InitialValues values(units, settings.seed, device.kind == device::Device::Kind::cpu ? 1 : 4);
  for (const auto& unit : units) {
    const auto optimizer = [&](const Layout& layout, const device::View& parameters) {
      return (settings.use_torch_adam ? torch_adamw : fused_adamw)({unit->name(), settings.adamw,
                                                                    segments(*unit, layout.owned, settings.decay_all),
                                                                    parameters, state_home, settings.trains});
    };
    const Layout layout =
        zero::layout(*unit, group, shape, device::type_of(settings.dtype), parameter_store_ != nullptr);
    const Places places{shard_home, secondary_pool_ ? &*secondary_pool_ : nullptr};
    states_.emplace_back(*unit, group, pool_, layout, optimizer, places);
    if (settings.begin) {
      states_.back().set_parameters([&, index = states_.size() - 1](std::int64_t begin, std::span<float> values) {
        settings.begin(index, begin, values);
      });
      continue;
    }
    states_.back().set_parameters(values.next());
  }
}

std::unique_ptr<Store> Engine::store(Place offloaded, plan::Kind moves) const {
  const bool moved = std::any_of(plans_.begin(), plans_.end(), [&](const plan::Plan& plan) {
    return std::any_of(plan.ops.begin(), plan.ops.end(), [&](const plan::Op& op) { return op.kind == moves; });
  });
  const Place place = offloaded != Place::device || !moved ? offloaded : settings_.offload.passes;
  if (place == Place::device) return nullptr;
  return place == Place::host ? host_store(group_.device()) : file_store(group_.device(), settings_.offload.nvme_path);
}

void Engine::require_same_plans() {
  std::string hashes;
  for (const plan::Plan& plan : plans_) hashes += (hashes.empty() ? "" : " ") + std::to_string(plan::hash(plan));
  comm::require_same(group_, {{"the hash of the plan", hashes}}, "plan of the step");
}

bool Engine::prepare(std::int64_t step) {
  const std::size_t place = plan::in_force(schedule_, step - 1);
  if (std::exchange(at_, place) != place) other_plan_ = true;
  if (!std::exchange(other_plan_, false)) return false;
  plan_ = plans_[at_];
  return true;
}

void Engine::measured(std::shared_ptr<const plan::Profile> profile) {
  budget_.profile = std::move(profile);
  for (std::size_t i = 0; i < schedule_.size(); ++i) {
    if (schedule_[i].behind == 0) continue;
    const std::uint64_t before = plan::hash(plans_[i]);
    plans_[i] = plan::compile(plan::baseline(plan_.shape), schedule_[i].passes, budget_);
    other_plan_ = other_plan_ || (i == at_ && plan::hash(plans_[i]) != before);
  }
  require_same_plans();
}

StepResult Engine::step(std::int64_t step, double learning_rate, const BatchOf& batch) {
  prepare(step);
  Run run;
  run.step = step;
  run.learning_rate = learning_rate;
  run.batch = &batch;
  run.leaf = [this](int micro) { return plan::leaf(plan_.shape, group_.rank(), micro); };
  const std::int64_t every = settings_.zeropp.self_test_every;
  run.self_test = !self_tested_ || (every > 0 && step % every == 0);
  self_tested_ = true;
  const Sent before = sent();
  execute(plan_, run);
  add(run.result, before, sent(), 1);
  run.result.leaf_losses = gather_losses(run, leaves());
  run.result.loss = device::tree_sum(std::span<const float>(run.result.leaf_losses)) / static_cast<float>(leaves());
  return run.result;
}

double Engine::evaluate(std::int64_t count, const BatchOf& batch, const LogitsSeen& seen) {
  const plan::Plan plan = evaluation_plan(plan_);
  struct Part {
    float loss;
    std::int64_t samples;
  };
  double sum = 0;
  std::int64_t samples = 0;
  for (std::int64_t first = 0; first < count; first += group_.size()) {
    Run run;
    run.batch = &batch;
    run.training = false;
    // Ranks beyond the last leaf go along, since gathers need them; their loss is left out.
    run.leaf = [&](int) { return std::min(first + group_.rank(), count - 1); };
    at::Tensor logits;
    if (seen) run.logits = &logits;
    const at::NoGradGuard no_grad;
    execute(plan, run);
    if (seen && first + group_.rank() < count) seen(first + group_.rank(), run.batches.at(0), logits);
    const auto parts = comm::exchange_values(group_, Part{run.losses.at(0), run.batches.at(0).samples()},
                                             "all-gather of the validation losses");
    for (std::int64_t i = 0; i < group_.size() && first + i < count; ++i) {
      const Part& part = parts[static_cast<std::size_t>(i)];
      sum += static_cast<double>(part.loss) * static_cast<double>(part.samples);
      samples += part.samples;
    }
  }
  return sum / static_cast<double>(samples);
}

std::vector<float> Engine::gather_losses(const Run& run, std::int64_t count) {
  const std::string mine(reinterpret_cast<const char*>(run.losses.data()), run.losses.size() * sizeof(float));
  const auto all = group_.all_gather_object(mine, "all-gather of the losses");
  std::vector<float> losses(static_cast<std::size_t>(count));
  for (int rank = 0; rank < group_.size(); ++rank) {
    const auto* const values = reinterpret_cast<const float*>(all[static_cast<std::size_t>(rank)].data());
    for (int micro = 0; micro < plan_.shape.micro_steps; ++micro) {
      losses[static_cast<std::size_t>(plan::leaf(plan_.shape, rank, micro))] = values[micro];
    }
  }
  return losses;
}

std::string Engine::digest() {
  device::Hash hash;
  for (UnitState& state : states_) hash.add(device::view(state.gather_parameters()));
  const std::string text = hash.text();
  comm::require_same(group_, {{"the digest of the parameters", text}}, "end of the step");
  return text;
}

std::int64_t Engine::state_bytes() {
  std::int64_t bytes = pool_.bytes() + (secondary_pool_ ? secondary_pool_->bytes() : 0);
  for (UnitState& state : states_) {
    const Kept* const shard = state.parameters.shard();
    bytes += state.optimizer->bytes() + (shard ? shard->resident_bytes() : 0);
  }
  for (const auto& store : {&optimizer_store_, &parameter_store_}) bytes += *store ? (*store)->staging_bytes() : 0;
  return bytes;
}

std::int64_t Engine::held() {
  std::int64_t bytes = 0;
  for (UnitState& state : states_) bytes += state.bytes_here();
  return bytes;
}

std::int64_t Engine::offloaded_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& store : {&optimizer_store_, &parameter_store_, &input_store_})
    bytes += *store ? (*store)->bytes() : 0;
  return bytes;
}

double Engine::ideal_state_bytes() const {
  return plan::state_bytes(static_cast<double>(unit::numel(units_)), plan_.shape.stage, group_.size(),
                           static_cast<int>(at::elementSize(settings_.dtype)), plan_.shape.offload_optimizer,
                           plan_.shape.offload_parameters, plan_.shape.secondary);
}

Engine::Sent Engine::sent() const {
  Sent sent{group_.bytes_sent(), group_.bytes_between_nodes(), group_.collectives()};
  if (!secondary_group_) return sent;
  sent.all += secondary_group_->bytes_sent();
  sent.between_nodes += secondary_group_->bytes_between_nodes();
  sent.collectives += secondary_group_->collectives();
  return sent;
}

void Engine::add(StepResult& result, const Sent& before, const Sent& after, int sign) {
  result.sent += sign * (after.all - before.all);
  result.sent_between_nodes += sign * (after.between_nodes - before.between_nodes);
  result.collectives += sign * (after.collectives - before.collectives);
}

std::optional<double> Engine::ideal_bytes_between_nodes() const {
  std::set<std::string> hosts;
  const int node = comm::ranks_beside_first(group_);
  for (int rank = 0; rank < group_.size(); ++rank) {
    hosts.insert(group_.host(rank));
    if (group_.host(rank) != group_.host(rank / node * node)) return {};
  }
  if (static_cast<int>(hosts.size()) * node != group_.size()) return {};
  return plan::sent_between_nodes(plan::baseline(plan_.shape), static_cast<int>(at::elementSize(settings_.dtype)),
                                  node);
}

double Engine::ideal_comm_bytes() const {
  return plan::sent_bytes(plan::baseline(plan_.shape), static_cast<int>(at::elementSize(settings_.dtype)));
}

}  // namespace zs::zero
