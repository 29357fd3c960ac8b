// SPDX-License-Identifier: Apache-2.0
#include "plan/cost.hpp"

#include <algorithm>
#include <array>

#include "plan/memory.hpp"
#include "plan/memory_curve.hpp"

namespace zs::plan {
namespace {

/// Kinds with the same arithmetic. One that was measured replaces one that was not.
std::vector<Kind> alike(Kind kind) {
  if (kind == Kind::backward) return {kind};
  return {kind, Kind::forward, Kind::forward_no_grad, Kind::recompute};
}

bool waits(Kind kind) {
  return kind == Kind::gather_wait || kind == Kind::reduce_wait || kind == Kind::gather_grad_wait;
}
/// Gathers of every sort follow one line.
Kind line_of(Kind kind) { return starts(kind) && kind != Kind::reduce ? Kind::gather : kind; }

std::string lane(Kind kind) {
  static constexpr std::array kNames = {"forward", "backward", "update", "offload", "communication"};  // by Part
  return kNames[static_cast<std::size_t>(part_of(kind))];
}

/// The amount that an operation's time is proportional to: elements, or bytes that a rank sends or moves.
double amount(const Op& op, const Shape& shape, int bytes_per_parameter) {
  const Division divided = shape.divided();
  const int ranks = ranks_of(op, shape);
  const auto owned = [&](double numel) { return share(numel, divided.optimizer_state, ranks); };
  if (op.kind == Kind::norm) return owned(trained(shape));
  const Unit& unit = unit_of(op, shape);
  const auto numbers = static_cast<double>(unit.trained());
  switch (op.kind) {
    case Kind::accumulate:
      return share(numbers, divided.gradients, ranks);
    case Kind::load:
    case Kind::store:
      return optimizer_bytes(shape, op.unit, bytes_per_parameter);
    case Kind::load_shard:
    case Kind::store_shard:
      return shard_bytes(shape, op.unit, bytes_per_parameter);
    case Kind::partition:
      return static_cast<double>(unit.numel) / std::max(shape.secondary, 1) * bytes_per_parameter;
    case Kind::step:  // what is orthogonalised as a whole takes as long as the rank with the most of it
      return unit.matrices.empty() ? owned(numbers) : numbers * busiest(unit.matrices, ranks);
    default:
      return sent_bytes(op, shape, bytes_per_parameter);
  }
}

/// Bytes that a collective of GPUs brings over the network for each rank of a node. NCCL passes gathered data from node
/// to node, so that each node receives it once, and adds gradients within a node first, in float32. Data of 4 bits goes
/// from each rank to each, as all data does between processors.
double over_network(const Op& op, const Shape& shape, int bytes_per_parameter, int node, bool gpus) {
  const double ranks = ranks_of(op, shape);
  if (ranks <= node) return 0;
  const bool reduces = op.kind == Kind::reduce;
  if (!gpus || (reduces && shape.quantized_gradients)) return sent_between_nodes(op, shape, bytes_per_parameter, node);
  const double whole =
      reduces ? static_cast<double>(operand(op, shape)) * 4 : operand_bytes(op, shape, bytes_per_parameter);
  return whole * (ranks - node) / ranks / node;
}

const char* activations_name(bool checkpointing) {
  return checkpointing ? "activations with checkpointing" : "activations without checkpointing";
}

}  // namespace

Line fit(const std::vector<std::pair<double, double>>& points) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [amount, seconds] : points) {
    n += 1, x += amount, y += seconds, xx += amount * amount, xy += amount * seconds;
  }
  const double spread = n * xx - x * x;
  Line line;
  if (spread > 1e-9 * n * xx) {
    line.each = (n * xy - x * y) / spread;
    line.start = (y - line.each * x) / n;
  }
  if (!(spread > 1e-9 * n * xx) || line.start < 0) line = {0, xx > 0 ? xy / xx : 0};
  if (line.each < 0) line = {y / n, 0};
  return line;
}

CostModel::CostModel(const Profile& profile, const Network& network) : profile_(profile), network_(network) {
  if (network_.node == 0) network_.node = profile.node;
  std::map<Kind, std::vector<std::pair<double, double>>> points;
  for (const Timing& timing : profile_.timings) {
    if (computes(timing.kind) || waits(timing.kind) || timing.kind == Kind::release) continue;
    const Op op{timing.kind, timing.unit, timing.kind == Kind::reduce && profile_.shape.divided().gradients ? 0 : -1};
    double seconds = timing.seconds;
    if (starts(timing.kind)) {
      const Timing* const end = profile_.find(wait_of(timing.kind), timing.unit);
      seconds += end ? end->seconds : 0;
      if (profile_.shape.ranks == 1) continue;  // nothing travelled
    }
    points[line_of(timing.kind)].emplace_back(amount(op, profile_.shape, profile_.bytes_per_parameter), seconds);
  }
  if (profile_.shape.micro_steps == 1) points.erase(Kind::accumulate);  // nothing was added
  for (const auto& [kind, measured] : points) lines_[kind] = fit(measured);
}

const Line* CostModel::line(Kind kind) const {
  const auto found = lines_.find(line_of(kind));
  return found == lines_.end() ? nullptr : &found->second;
}

double CostModel::of_input(const Op& op, std::set<std::string>& unknown) const {
  const Line* const fitted = line(op.kind == Kind::load_input ? Kind::load : Kind::store);
  if (!fitted) unknown.insert(name(op.kind));
  return fitted ? fitted->at(input_bytes(profile_, op.unit)) : 0;
}

double CostModel::seconds(const Op& op, const Shape& shape, std::set<std::string>& unknown) const {
  if (op.kind == Kind::load_input || op.kind == Kind::store_input) return of_input(op, unknown);
  if (op.kind == Kind::release || waits(op.kind)) return 0;
  if (computes(op.kind)) {
    for (const Kind kind : alike(op.kind)) {
      if (const Timing* const timing = profile_.find(kind, op.unit)) return timing->seconds * crowding(shape);
    }
    unknown.insert(name(op.kind) + " of " + unit_of(op, shape).name);
    return 0;
  }
  if (starts(op.kind) && shape.ranks == 1) return 0;
  if (op.kind == Kind::accumulate && shape.micro_steps == 1) return 0;
  const int bytes = profile_.bytes_per_parameter;
  double here = amount(op, shape, bytes), elsewhere = 0;
  if (starts(op.kind) && network_.bandwidth > 0) {
    const double far = over_network(op, shape, bytes, network_.node, profile_.overlaps);
    if (far > 0) elsewhere = network_.latency + far / network_.bandwidth;
    here -= sent_between_nodes(op, shape, bytes, network_.node);
    if (far > 0 && profile_.overlaps) {
      // Each rank has all but what its node began with from its likes on the node.
      here = operand_bytes(op, shape, bytes) * (network_.node - 1) / network_.node;
    }
  }
  const auto line = lines_.find(line_of(op.kind));
  if (line == lines_.end()) {
    if (op.kind != Kind::partition && here > 0)
      unknown.insert(starts(op.kind) ? "collectives within a node" : name(op.kind));
    return elsewhere;
  }
  return elsewhere + line->second.at(here) * crowding(shape);
}

double CostModel::crowding(const Shape& shape) const {
  if (profile_.slots == 0) return 1;
  const auto share = [&](int ranks, int node) {
    return std::max(1.0, static_cast<double>(std::min(ranks, node)) / profile_.slots);
  };
  return share(shape.ranks, network_.node) / share(profile_.shape.ranks, profile_.node);
}

double CostModel::memory(const Plan& plan) const {
  if (profile_.overlaps) {
    const double rest = std::max(0.0, profile_.peak - peak_bytes(baseline(profile_.shape), profile_));
    return peak_bytes(plan, profile_) + rest - MemoryCurve(profile_).relief(plan);
  }
  const double then = activation_bytes(profile_, profile_.shape.activation_checkpointing),
               here = activation_bytes(profile_, plan.shape.activation_checkpointing);
  // Memory that no plan names (batches, workspaces of products) is as much as it was when it was measured.
  const double rest = std::max(0.0, profile_.peak - profile_.state - std::max(0.0, then));
  return kept_bytes(plan, profile_.bytes_per_parameter) + std::max(0.0, here) + rest -
         MemoryCurve(profile_).relief(plan);
}

Prediction CostModel::predict(const Plan& plan) const {
  Prediction result;
  double now = profile_.rest * crowding(plan.shape), travels_until = 0;
  result.parts["rest"] = now;
  std::map<std::pair<Kind, int>, double> done;
  for (const Op& op : plan.ops) {
    double took = seconds(op, plan.shape, result.unknown);
    // An operation that begins with the next gather begins once.
    if (const Line* const gather = line(Kind::gather); op.with_next && gather && took > 0) took -= gather->start;
    if (took > 0) result.parts[lane(op.kind)] += took;
    if (profile_.overlaps && starts(op.kind)) {
      travels_until = std::max(travels_until, now) + took;
      done[{wait_of(op.kind), op.unit}] = travels_until;
    } else if (waits(op.kind)) {
      now = std::max(now, done[{op.kind, op.unit}]);
    } else {
      now += took;
    }
  }
  result.seconds = now;
  result.memory = memory(plan);
  const bool checkpointing = plan.shape.activation_checkpointing;
  if (activation_bytes(profile_, checkpointing) < 0) result.unknown.insert(activations_name(checkpointing));
  result.sent = sent_bytes(plan, profile_.bytes_per_parameter);
  result.between_nodes = sent_between_nodes(plan, profile_.bytes_per_parameter, network_.node);
  const Shape &then = profile_.shape, &here = plan.shape;
  if (here.micro_steps > 1 && then.micro_steps == 1) result.unknown.insert("sums over micro-steps");
  if (here.offload_optimizer != then.offload_optimizer || here.offload_parameters != then.offload_parameters)
    result.unknown.insert("offload");
  if (here.quantized_weights != then.quantized_weights || here.quantized_gradients != then.quantized_gradients)
    result.unknown.insert("rounding to integers");
  if (here.float8_gathers != then.float8_gathers) result.unknown.insert("rounding to FP8");
  return result;
}

}  // namespace zs::plan
