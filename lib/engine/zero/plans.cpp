// SPDX-License-Identifier: Apache-2.0
#include "zero/plans.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.hpp"
#include "base/words.hpp"
#include "comm/agree.hpp"
#include "device/tensor.hpp"
#include "plan/offload.hpp"
#include "unit/arithmetic.hpp"
#include "zero/packed.hpp"

namespace zs::zero {
namespace {

using comm::kTiles;

/// Throws Error if the ranks cannot do a part of ZeRO++.
void require_divisible(const plan::Shape& shape) {
  if (shape.secondary > 0 && shape.ranks % shape.secondary != 0)
    throw Error("a secondary partition of " + std::to_string(shape.secondary) + " ranks does not divide " +
                std::to_string(shape.ranks) + " ranks: set zero_hpz_partition_size to the ranks of a node");
  const bool integers = shape.quantized_weights || shape.quantized_gradients;
  const bool nested = shape.ranks <= kTiles && std::has_single_bit(static_cast<unsigned>(shape.ranks));
  if (integers && !nested)
    throw Error("quantized collectives need a power of two of ranks (1, 2, 4, 8 ... " + std::to_string(kTiles) +
                "), not " + std::to_string(shape.ranks) +
                ": leave out zero_quantized_weights and zero_quantized_gradients");
  if (shape.sequence > 1 && (shape.ranks % shape.sequence != 0 || shape.short_ranks % shape.sequence != 0))
    throw Error("sequences of " + std::to_string(shape.sequence) + " ranks do not divide " +
                std::to_string(shape.ranks) + " ranks: set sequence_parallel to a divisor");
  if (shape.experts > 1 && (shape.ranks % shape.experts != 0 || shape.short_ranks % shape.experts != 0))
    throw Error("experts of " + std::to_string(shape.experts) + " ranks do not divide " + std::to_string(shape.ranks) +
                " ranks, or their micro-batches: set expert_parallel to a divisor");
  if (shape.quantized_gradients && shape.sequence * shape.chunks_of_rank() > 1)
    throw Error("quantized gradients are of whole sequences: leave out zero_quantized_gradients");
  if (shape.quantized_gradients && shape.short_ranks > 0)
    throw Error("quantized gradients need the same number of micro-batches on every rank, and " +
                std::to_string(shape.leaves()) + " do not divide among " + std::to_string(shape.ranks) +
                " ranks: leave out zero_quantized_gradients");
}

/// Bytes of one number of queries, keys and values.
std::int64_t exchanged_bytes(const comm::Group& group, const Settings& settings) {
  const bool mixed = settings.autocast != at::kFloat;
  return static_cast<std::int64_t>(at::elementSize(
      mixed ? settings.autocast : unit::computed_in(settings.dtype, device::torch_device(group.device()).type())));
}

plan::Shape shape_of(const comm::Group& group, const unit::Units& units, const Strategy& strategy,
                     const Settings& settings) {
  plan::Shape shape{strategy, {}, strategy.activation_checkpointing, strategy.keeps_attention};
  shape.ranks = group.size();
  shape.offload_optimizer = settings.offload.optimizer != Place::device;
  shape.offload_parameters = settings.offload.parameters != Place::device;
  shape.secondary = settings.zeropp.secondary;
  shape.quantized_weights = settings.zeropp.quantized_weights;
  shape.float8_gathers = settings.float8_gathers;
  shape.quantized_gradients = settings.zeropp.quantized_gradients;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const unit::Unit& unit = *units[i];
    const int among = strategy.experts > 1 && unit.experts() > 0 ? strategy.experts : 1;
    const std::unique_ptr<unit::Unit> part = among > 1 ? unit.part(0, unit.experts() / among) : nullptr;
    const unit::Unit& computed = part ? *part : unit;
    const bool block = is_block(units, i);
    shape.units.push_back({unit.name(), computed.numel(), unit.tied_to(), kept(settings.optimizer, computed, block),
                           matrices(settings.optimizer, computed, block), computed.numel() - computed.trained(),
                           unit::idle(computed)});
    const std::int64_t numbers =
        among > 1 ? unit.routed() * among : unit.exchanged(std::int64_t{shape.sequence} * shape.chunks_of_rank());
    shape.units.back().exchanged = numbers * strategy.tokens * exchanged_bytes(group, settings);
    shape.units.back().among = among;
    shape.units.back().packed = computed.packed();
    shape.units.back().packed_bytes = packed_bytes(computed);
    for (const unit::Parameter& parameter : computed.parameters()) {
      if (parameter.float8_scale < 0) continue;
      shape.units.back().float8 += parameter.numel();
      shape.units.back().float8_scales = std::max(shape.units.back().float8_scales, parameter.float8_scale + 1);
    }
  }
  plan::offload_share(shape, settings.offload.ratio);
  return shape;
}

}  // namespace

plan::Plan evaluation_plan(const plan::Plan& training) {
  plan::Shape shape = training.shape;
  shape.micro_steps = 1;
  shape.short_ranks = 0;
  shape.secondary = 0;  // each unit is gathered once
  plan::Plan plan = plan::baseline(shape);
  const auto loss = std::find_if(plan.ops.begin(), plan.ops.end(),
                                 [last = static_cast<int>(shape.units.size()) - 1](const plan::Op& op) {
                                   return plan::computes(op.kind) && op.unit == last;
                                 });
  plan.ops.erase(loss + 1, plan.ops.end());
  // Shards that are loaded for the cut part are not wanted either.
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

Plans::Plans(comm::Group& group, const unit::Units& units, const Strategy& strategy, const Settings& settings)
    : group_(group),
      schedule_(strategy.passes.empty() ? plan::from_the_start({}) : strategy.passes),
      budget_(strategy.budget) {
  const plan::Shape shape = shape_of(group, units, strategy, settings);
  const plan::Plan baseline = plan::baseline(shape);
  for (const plan::Scheduled& entry : schedule_) plans_.push_back(plan::compile(baseline, entry.passes, budget_));
  current_ = plans_.front();
  require_divisible(shape);
  for (const plan::Plan& plan : plans_) plan::check(plan);
  require_same();
}

bool Plans::have(plan::Kind kind, int unit) const {
  return std::any_of(plans_.begin(), plans_.end(), [&](const plan::Plan& plan) {
    return std::any_of(plan.ops.begin(), plan.ops.end(),
                       [&](const plan::Op& op) { return op.kind == kind && (unit < 0 || op.unit == unit); });
  });
}

void Plans::require_same() {
  const std::string hashes =
      joined(plans_, " ", [](const plan::Plan& plan) { return std::to_string(plan::hash(plan)); });
  comm::require_same(group_, {{"the hash of the plan", hashes}}, "plan of the step");
}

bool Plans::prepare(std::int64_t step) {
  const std::size_t place = plan::in_force(schedule_, step - 1);
  if (std::exchange(at_, place) != place) changed_ = true;
  if (!std::exchange(changed_, false)) return false;
  current_ = plans_[at_];
  return true;
}

void Plans::measured(std::shared_ptr<const plan::Profile> profile) {
  budget_.profile = std::move(profile);
  for (std::size_t i = 0; i < schedule_.size(); ++i) {
    if (schedule_[i].behind == 0) continue;
    const std::uint64_t before = plan::hash(plans_[i]);
    plans_[i] = plan::compile(plan::baseline(current_.shape), schedule_[i].passes, budget_);
    changed_ = changed_ || (i == at_ && plan::hash(plans_[i]) != before);
  }
  require_same();
}

}  // namespace zs::zero
