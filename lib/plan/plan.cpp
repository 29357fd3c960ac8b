// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>

namespace zs::plan {
namespace {

constexpr std::array kNames = {"gather",      "gather_wait",      "release",    "forward", "forward_no_grad",
                               "recompute",   "backward",         "accumulate", "reduce",  "reduce_wait",
                               "gather_grad", "gather_grad_wait", "norm",       "step",    "load",
                               "store",       "load_shard",       "store_shard"};

bool computes(Kind kind) {
  return kind == Kind::forward || kind == Kind::forward_no_grad || kind == Kind::recompute || kind == Kind::backward;
}

/// Builds a baseline step by step.
class Builder {
 public:
  explicit Builder(const Shape& shape) : last_(static_cast<int>(shape.units.size()) - 1) { plan_.shape = shape; }

  Plan build() {
    for (int micro = 0; micro < plan_.shape.micro_steps; ++micro) {
      forward(micro);
      backward(micro);
    }
    if (plan_.shape.stage <= 1) reduce_all();
    load_for_step(0);
    add(Kind::norm);
    for (int unit = 0; unit <= last_; ++unit) {
      load_for_step(unit + 1);  // while this one is updated
      add(Kind::step, unit);
      if (plan_.shape.offload_optimizer) add(Kind::store, unit);
      if (plan_.shape.offload_parameters) add(Kind::store_shard, unit);
    }
    load_early(plan_);
    if (plan_.shape.stage == 1 || plan_.shape.stage == 2) {
      for (int unit = 0; unit <= last_; ++unit) add(Kind::gather, unit), add(Kind::gather_wait, unit);
    }
    return plan_;
  }

 private:
  Plan plan_;
  int last_;

  bool sharded() const { return plan_.shape.stage == 3; }
  void add(Kind kind, int unit = -1, int micro = -1) { plan_.ops.push_back({kind, unit, micro}); }
  void load_for_step(int unit) {
    if (unit > last_) return;
    if (plan_.shape.offload_optimizer) add(Kind::load, unit);
    if (plan_.shape.offload_parameters) add(Kind::load_shard, unit);
  }

  /// The units whose parameters `unit` reads: those it borrows first.
  std::vector<int> reads(int unit) const {
    const int borrowed = plan_.shape.units[static_cast<std::size_t>(unit)].borrows;
    return borrowed < 0 ? std::vector{unit} : std::vector{borrowed, unit};
  }
  /// True if a unit after `unit` in this direction (1 forward, -1 backward) reads `read` too.
  bool read_later(int read, int unit, int direction) const {
    for (int next = unit + direction; next >= 0 && next <= last_; next += direction) {
      const auto its = reads(next);
      if (std::find(its.begin(), its.end(), read) != its.end()) return true;
    }
    return false;
  }

  template <typename Compute>
  void pass(int direction, Compute compute) {
    std::vector<bool> gathered(plan_.shape.units.size());
    for (int unit = direction > 0 ? 0 : last_; unit >= 0 && unit <= last_; unit += direction) {
      if (sharded()) {
        for (const int read : reads(unit)) {
          if (gathered[static_cast<std::size_t>(read)]) continue;
          gathered[static_cast<std::size_t>(read)] = true;
          if (plan_.shape.offload_parameters) add(Kind::load_shard, read);
          add(Kind::gather, read), add(Kind::gather_wait, read);
        }
      }
      compute(unit);
      if (!sharded()) continue;
      for (const int read : reads(unit)) {
        if (!read_later(read, unit, direction)) add(Kind::release, read);
      }
    }
  }

  void forward(int micro) {
    pass(1, [&](int unit) {
      // The loss unit's backward comes next: keeping its activations costs no memory at the peak.
      const bool light = plan_.shape.activation_checkpointing && unit != last_;
      add(light ? Kind::forward_no_grad : Kind::forward, unit, micro);
    });
  }

  void backward(int micro) {
    pass(-1, [&](int unit) {
      if (plan_.shape.activation_checkpointing && unit != last_) add(Kind::recompute, unit, micro);
      add(Kind::backward, unit, micro);
      if (plan_.shape.stage <= 1) {
        add(Kind::accumulate, unit, micro);
      } else {
        add(Kind::reduce, unit, micro), add(Kind::reduce_wait, unit, micro), add(Kind::accumulate, unit, micro);
      }
    });
  }

  void reduce_all() {
    for (int unit = last_; unit >= 0; --unit) {
      add(Kind::reduce, unit), add(Kind::reduce_wait, unit);
      if (plan_.shape.stage == 0) add(Kind::gather_grad, unit), add(Kind::gather_grad_wait, unit);
    }
  }
};

}  // namespace

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

std::int64_t leaf(const Shape& shape, int rank, int micro) {
  return shape.stage <= 1 ? static_cast<std::int64_t>(rank) * shape.micro_steps + micro
                          : static_cast<std::int64_t>(micro) * shape.ranks + rank;
}

std::string to_text(const Op& op, const Plan& plan) {
  std::string text = kNames[static_cast<std::size_t>(op.kind)];
  if (op.unit >= 0) text += " " + plan.shape.units[static_cast<std::size_t>(op.unit)].name;
  if (op.micro >= 0) text += " @" + std::to_string(op.micro);
  return text;
}

std::string to_text(const Plan& plan) {
  std::string text = "# plan: stage " + std::to_string(plan.shape.stage) + ", " + std::to_string(plan.shape.ranks) +
                     " ranks, " + std::to_string(plan.shape.micro_steps) + " micro-steps, passes:";
  for (const std::string& pass : plan.passes) text += " " + pass;
  text += plan.passes.empty() ? " none\n" : "\n";
  for (std::size_t i = 0; i < plan.ops.size(); ++i)
    text += std::to_string(i) + "\t" + to_text(plan.ops[i], plan) + "\n";
  return text;
}

std::uint64_t hash(const Plan& plan) {
  std::string text = to_text(plan);
  for (const Unit& unit : plan.shape.units)
    text += unit.name + " " + std::to_string(unit.numel) + " " + std::to_string(unit.borrows) + "\n";
  return XXH3_64bits(text.data(), text.size());
}

double sent_bytes(const Plan& plan, int bytes_per_parameter) {
  constexpr int kSum = 4;
  double bytes = 0;
  for (const Op& op : plan.ops) {
    // A reduction of one micro-step, or of a step of one, moves a gradient as backward left it.
    const bool sum =
        op.kind == Kind::gather_grad || (op.kind == Kind::reduce && op.micro < 0 && plan.shape.micro_steps > 1);
    if (op.kind != Kind::gather && op.kind != Kind::reduce && op.kind != Kind::gather_grad) continue;
    bytes += static_cast<double>(plan.shape.units[static_cast<std::size_t>(op.unit)].numel) *
             (sum ? kSum : bytes_per_parameter);
  }
  return bytes * (plan.shape.ranks - 1) / plan.shape.ranks;
}

double state_bytes(double parameters, int stage, double ranks, int bytes_per_parameter, bool offload_optimizer,
                   bool offload_parameters) {
  const auto share = [&](int divided_from) { return stage >= divided_from ? parameters / ranks : parameters; };
  return (offload_parameters && stage == 3 ? 0 : share(3) * bytes_per_parameter) + share(2) * bytes_per_parameter +
         (offload_optimizer ? 0 : share(1) * (bytes_per_parameter < 4 ? 12 : 8));
}

std::int64_t peak_gathered(const Plan& plan) {
  if (plan.shape.stage < 3) return 0;
  std::int64_t now = 0, peak = 0;
  for (const Op& op : plan.ops) {
    if (op.kind == Kind::gather)
      peak = std::max(peak, now += plan.shape.units[static_cast<std::size_t>(op.unit)].numel);
    if (op.kind == Kind::release) now -= plan.shape.units[static_cast<std::size_t>(op.unit)].numel;
  }
  return peak;
}

}  // namespace zs::plan
