// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>

namespace zs::plan {
namespace {

constexpr std::array kNames = {
    "gather",          "gather_secondary", "gather_wait", "partition",  "release", "forward",
    "forward_no_grad", "recompute",        "backward",    "accumulate", "reduce",  "reduce_wait",
    "gather_grad",     "gather_grad_wait", "norm",        "step",       "load",    "store",
    "load_shard",      "store_shard",      "load_input",  "store_input"};

/// Builds a baseline step by step.
class Builder {
 public:
  explicit Builder(const Shape& shape) : plan_{shape, {}, {}}, last_(static_cast<int>(shape.units.size()) - 1) {}

  Plan build() {
    for (int micro = 0; micro < plan_.shape.micro_steps; ++micro) {
      forward(micro);
      backward(micro);
    }
    complete_gradients();
    load_state(first_), load_shard(first_);
    add(Kind::norm);
    for (int unit = first_; unit <= last_; ++unit) {
      if (!trained(unit)) continue;
      if (offloads(unit)) load_state(unit + 1);  // while this one is updated, and those behind it that stay
      load_shard(unit + 1);
      add(Kind::step, unit);
      if (offloads(unit)) add(Kind::store, unit);
      if (plan_.shape.offload_parameters) add(Kind::store_shard, unit);
    }
    load_early(plan_);
    if (divided_.optimizer_state && !divided_.parameters) {
      for (int unit = first_; unit <= last_; ++unit) {
        if (trained(unit)) add(Kind::gather, unit), add(Kind::gather_wait, unit);
      }
    }
    return plan_;
  }

 private:
  Plan plan_;
  Division divided_ = plan_.shape.divided();
  int first_ = first_trained(plan_.shape), last_;
  std::vector<bool> partitioned_ = std::vector<bool>(plan_.shape.units.size());  // once more, in this step

  void add(Kind kind, int unit = -1, int micro = -1) { plan_.ops.push_back({kind, unit, micro}); }
  bool trained(int unit) const { return plan_.shape.units[static_cast<std::size_t>(unit)].trained() > 0; }
  bool offloads(int unit) const {
    return trained(unit) && plan_.shape.offloads(plan_.shape.units[static_cast<std::size_t>(unit)]);
  }
  /// Loads the state of the next unit, from `unit` on, of which it is away.
  void load_state(int unit) {
    while (unit <= last_ && !offloads(unit)) ++unit;
    if (unit <= last_) add(Kind::load, unit);
  }
  /// Loads the shard of the next unit that is updated, from `unit` on.
  void load_shard(int unit) {
    while (unit <= last_ && !trained(unit)) ++unit;
    if (unit <= last_ && plan_.shape.offload_parameters) add(Kind::load_shard, unit);
  }

  /// The units whose parameters `unit` reads: the one it is tied to first.
  std::vector<int> reads(int unit) const {
    const int borrowed = plan_.shape.units[static_cast<std::size_t>(unit)].tied_to;
    return borrowed < 0 ? std::vector{unit} : std::vector{borrowed, unit};
  }
  /// Whether a direction comes to a unit: 1 forward, -1 backward.
  bool inside(int unit, int direction) const { return unit <= last_ && unit >= (direction > 0 ? 0 : first_); }
  /// True if a unit after `unit` in this direction reads `read` too.
  bool read_later(int read, int unit, int direction) const {
    for (int next = unit + direction; inside(next, direction); next += direction) {
      const auto inputs = reads(next);
      if (std::find(inputs.begin(), inputs.end(), read) != inputs.end()) return true;
    }
    return false;
  }

  void gather(int unit) {
    auto&& partitioned = partitioned_[static_cast<std::size_t>(unit)];
    if (partitioned) {
      add(Kind::gather_secondary, unit), add(Kind::gather_wait, unit);
      return;
    }
    if (plan_.shape.offload_parameters) add(Kind::load_shard, unit);
    add(Kind::gather, unit), add(Kind::gather_wait, unit);
    if (plan_.shape.secondary == 0) return;
    add(Kind::partition, unit);
    partitioned = true;
  }

  template <typename Compute>
  void pass(int direction, Compute compute) {
    std::vector<bool> gathered(plan_.shape.units.size());
    for (int unit = direction > 0 ? 0 : last_; inside(unit, direction); unit += direction) {
      if (divided_.parameters) {
        for (const int read : reads(unit)) {
          if (gathered[static_cast<std::size_t>(read)]) continue;
          gathered[static_cast<std::size_t>(read)] = true;
          gather(read);
        }
      }
      compute(unit);
      if (!divided_.parameters) continue;
      for (const int read : reads(unit)) {
        if (!read_later(read, unit, direction)) add(Kind::release, read);
      }
    }
  }

  void forward(int micro) {
    pass(1, [&](int unit) {
      // The loss unit's backward comes next: keeping its activations costs no memory at the peak.
      const bool light = (plan_.shape.activation_checkpointing && unit != last_) || unit < first_;
      add(light ? Kind::forward_no_grad : Kind::forward, unit, micro);
    });
  }

  void backward(int micro) {
    pass(-1, [&](int unit) {
      if (plan_.shape.activation_checkpointing && unit != last_) add(Kind::recompute, unit, micro);
      add(Kind::backward, unit, micro);
      if (!trained(unit)) return;
      if (divided_.gradients) add(Kind::reduce, unit, micro), add(Kind::reduce_wait, unit, micro);
      add(Kind::accumulate, unit, micro);
    });
  }

  void complete_gradients() {
    for (int unit = last_; unit >= first_; --unit) {
      if (!trained(unit)) continue;
      if (!divided_.gradients) add(Kind::reduce, unit), add(Kind::reduce_wait, unit);
      if (!divided_.optimizer_state) add(Kind::gather_grad, unit), add(Kind::gather_grad_wait, unit);
    }
  }
};

}  // namespace

bool computes(Kind kind) {
  return kind == Kind::forward || kind == Kind::forward_no_grad || kind == Kind::recompute || kind == Kind::backward;
}

Part part_of(Kind kind) {
  switch (kind) {
    case Kind::forward:
    case Kind::forward_no_grad:
    case Kind::recompute:
      return Part::forward;
    case Kind::backward:
      return Part::backward;
    case Kind::norm:
    case Kind::step:
    case Kind::accumulate:
      return Part::update;
    case Kind::load:
    case Kind::store:
    case Kind::load_shard:
    case Kind::store_shard:
    case Kind::load_input:
    case Kind::store_input:
      return Part::offload;
    default:
      return Part::communication;
  }
}

bool gathers(Kind kind) { return kind == Kind::gather || kind == Kind::gather_secondary; }

bool starts(Kind kind) { return gathers(kind) || kind == Kind::reduce || kind == Kind::gather_grad; }

Kind wait_of(Kind kind) {
  return kind == Kind::reduce        ? Kind::reduce_wait
         : kind == Kind::gather_grad ? Kind::gather_grad_wait
                                     : Kind::gather_wait;
}

const Unit& unit_of(const Op& op, const Shape& shape) {
  static const Unit kNone;
  return op.unit < 0 ? kNone : shape.units[static_cast<std::size_t>(op.unit)];
}

namespace {

/// The collectives of a step: each owner gets one of its matrices by a collective, and its result goes by another.
std::int64_t collectives_of_directions(const Op& op, const Shape& shape) {
  std::size_t rounds = 0;
  for (const std::vector<Matrix>& held : owned(sent_matrices(op, shape), ranks_of(op, shape)))
    rounds = std::max(rounds, held.size());
  return static_cast<std::int64_t>(rounds) * (shape.divided().optimizer_state ? 2 : 1);
}

}  // namespace

std::int64_t collectives(const Plan& plan) {
  std::int64_t count = 0;
  for (const Op& op : plan.ops)
    count += starts(op.kind) && !op.with_next ? 1 : collectives_of_directions(op, plan.shape);
  return count;
}

std::int64_t overlapped(const Plan& plan) {
  std::int64_t count = 0;
  for (auto op = plan.ops.begin(); op != plan.ops.end(); ++op) {
    if (!starts(op->kind) || op->with_next) continue;
    const auto end = std::find_if(op, plan.ops.end(),
                                  [&](const Op& one) { return one.kind == wait_of(op->kind) && one.unit == op->unit; });
    count += std::any_of(op, end, [](const Op& one) { return computes(one.kind); });
  }
  return count;
}

int first_trained(const Shape& shape) {
  const auto found = std::ranges::find_if(shape.units, [](const Unit& unit) { return unit.trained() > 0; });
  return static_cast<int>(found - shape.units.begin());
}

Plan baseline(const Shape& shape) { return Builder(shape).build(); }

void load_early(Plan& plan) {
  auto& ops = plan.ops;
  for (std::size_t i = 0; i + 1 < ops.size(); ++i) {
    const Op load = ops[i];
    if (load.kind != Kind::load_shard || ops[i + 1] != Op{Kind::gather, load.unit, -1}) continue;
    for (std::size_t to = i; to-- > 0;) {
      // The shard is in use, or was loaded, for the gather before.
      const bool used =
          ops[to].unit == load.unit && (ops[to].kind == Kind::gather_wait || ops[to].kind == Kind::gather);
      if (used) break;
      if (!computes(ops[to].kind)) continue;
      std::rotate(ops.begin() + static_cast<std::ptrdiff_t>(to), ops.begin() + static_cast<std::ptrdiff_t>(i),
                  ops.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      break;
    }
  }
}

namespace {

/// The leaves of a rank that computes neighbours in time: of whole micro-batches.
tree::Leaves slice_of_leaves(const Shape& shape, std::int64_t rank) {
  const std::int64_t micro_batches = shape.leaves() / shape.chunks_of_rank();
  return {micro_batches * rank / shape.ranks * shape.chunks_of_rank(),
          micro_batches * (rank + 1) / shape.ranks * shape.chunks_of_rank()};
}

}  // namespace

std::int64_t leaf(const Shape& shape, int rank, int micro) {
  const bool neighbours = shape.divided().gradients;
  const tree::Leaves held = neighbours ? tree::Leaves{std::int64_t{rank} * shape.chunks_of_rank(), shape.leaves()}
                                       : slice_of_leaves(shape, rank);
  const std::int64_t stride = neighbours ? shape.ranks : 1, leaf = held.begin + micro * stride * shape.chunks_of_rank();
  return leaf < held.end ? leaf : -1;
}

tree::Addends addends(const Shape& shape, int micro) {
  std::vector<std::vector<tree::Leaves>> terms(static_cast<std::size_t>(shape.ranks));
  for (int rank = 0; rank < shape.ranks; ++rank) {
    auto& nodes = terms[static_cast<std::size_t>(rank)];
    if (micro < 0) {
      nodes = tree::nodes(slice_of_leaves(shape, rank), shape.leaves());
    } else if (const std::int64_t first = leaf(shape, rank, micro); first >= 0) {
      nodes = tree::nodes({first, first + shape.chunks_of_rank()}, shape.leaves());
    }
  }
  return tree::Addends::of(std::move(terms), shape.leaves());
}

std::string name(Kind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::string to_text(const Op& op, const Plan& plan) {
  std::string text = kNames[static_cast<std::size_t>(op.kind)];
  if (op.unit >= 0) text += " " + unit_of(op, plan.shape).name;
  if (op.micro >= 0) text += " @" + std::to_string(op.micro);
  return text;
}

namespace {

std::string header(const Plan& plan) {
  std::string text = "# plan: stage " + std::to_string(plan.shape.stage) + ", " + std::to_string(plan.shape.ranks) +
                     " ranks, " + std::to_string(plan.shape.micro_steps) + " micro-steps, ";
  const std::int64_t shared = std::int64_t{plan.shape.sequence} * plan.shape.chunks_of_rank();
  if (plan.shape.short_ranks > 0) text += std::to_string(plan.shape.leaves() / shared) + " micro-batches, ";
  if (plan.shape.sequence > 1) text += "sequences of " + std::to_string(plan.shape.sequence) + " ranks, ";
  if (shared > 1) text += std::to_string(shared) + " chunks, ";
  if (plan.shape.experts > 1) text += "experts of " + std::to_string(plan.shape.experts) + " ranks, ";
  if (plan.shape.secondary > 0) text += "secondary partition of " + std::to_string(plan.shape.secondary) + " ranks, ";
  if (plan.shape.quantized_weights) text += "parameters in 8 bits, ";
  if (plan.shape.float8_gathers) text += "weights in FP8, ";
  const auto is_held = [](const Unit& unit) { return unit.packed > 0; };
  if (std::ranges::any_of(plan.shape.units, is_held)) text += "frozen matrices in 4 bits, ";
  if (plan.shape.quantized_gradients) text += "gradients in 4 bits, ";
  text += "passes:";
  for (const std::string& pass : plan.passes) text += " " + pass;
  return text + (plan.passes.empty() ? " none\n" : "\n");
}

std::string operations(const Plan& plan) {
  std::string text;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    text += std::to_string(i) + "\t" + to_text(plan.ops[i], plan);
    text += plan.ops[i].with_next ? ", with the next\n" : "\n";
  }
  return text;
}

}  // namespace

std::string to_text(const Plan& plan) {
  std::string text = header(plan);
  for (const std::string& effect : plan.effects) text += "# " + effect + "\n";
  return text + operations(plan);
}

std::uint64_t hash(const Plan& plan) {
  std::string text = header(plan) + operations(plan);
  for (const Unit& unit : plan.shape.units)
    text += unit.name + " " + std::to_string(unit.numel) + " " + std::to_string(unit.tied_to) + " " +
            std::to_string(unit.kept) + " " + std::to_string(unit.frozen) +
            (unit.matrices.empty() ? "\n" : " matrices\n");
  return XXH3_64bits(text.data(), text.size());
}

Shape Shape::of(const Unit& unit) const {
  Shape step{*this,
             {},
             activation_checkpointing,
             keeps_attention,
             offload_optimizer,
             offload_parameters,
             secondary,
             quantized_weights,
             float8_gathers,
             quantized_gradients};
  step.ranks /= unit.among, step.short_ranks /= unit.among, step.chunks *= unit.among;
  return step;
}

Division divided_in_memory(const Shape& shape, bool shards_move) {
  const Division stage = shape.divided();
  const bool several = shape.ranks > 1;
  const bool come_and_go = several || shards_move || shape.quantized_weights || shape.secondary > 0;
  return {stage.optimizer_state && several, stage.gradients && several, stage.parameters && come_and_go};
}

}  // namespace zs::plan
