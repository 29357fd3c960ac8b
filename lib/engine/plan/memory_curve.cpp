// SPDX-License-Identifier: Apache-2.0
#include "plan/memory_curve.hpp"

#include <algorithm>
#include <utility>

namespace zs::plan {
namespace {

const Unit& at(const Shape& shape, int unit) { return shape.units[static_cast<std::size_t>(unit)]; }

/// Walks a plan and adds up the sizes of its buffers.
class MemoryWalk {
 public:
  MemoryWalk(const Plan& plan, const Profile& profile)
      : shape_(plan.shape), profile_(profile), units_(plan.shape.units.size()) {
    now_ = state_bytes(shape_, profile.bytes_per_parameter);
    for (const Op& op : plan.ops) {
      const double before = now_;
      if (op.unit >= 0) run(op);
      curve_.push_back(std::max(before, now_));
    }
  }
  std::vector<double> curve() && { return std::move(curve_); }

 private:
  struct Held {
    double activations = 0;  ///< from forward to backward
    bool shard_is_loaded = false;
  };
  const Shape& shape_;
  const Profile& profile_;
  std::vector<Held> units_;
  double now_ = 0;
  std::vector<double> curve_;

  void keep(Held& held, double bytes) {
    held.activations += bytes;
    now_ += bytes;
  }

  void run(const Op& op) {
    Held& held = units_[static_cast<std::size_t>(op.unit)];
    const int bytes = profile_.bytes_per_parameter;
    const double whole = shape_.divided().parameters ? static_cast<double>(unit_of(op, shape_).numel) * bytes : 0;
    switch (op.kind) {
      case Kind::forward:
      case Kind::forward_no_grad:
      case Kind::recompute:
        // A unit without backward keeps nothing for it.
        return keep(held, op.unit < first_trained(shape_) ? 0 : profile_.left_by(op.kind, op.unit));
      case Kind::backward:
        return keep(held, -held.activations);
      case Kind::store_input:
        return keep(units_[static_cast<std::size_t>(op.unit) - 1], -input_bytes(profile_, op.unit));
      case Kind::load_input:
        return keep(units_[static_cast<std::size_t>(op.unit) - 1], input_bytes(profile_, op.unit));
      case Kind::gather:
      case Kind::gather_secondary:
        now_ += whole;
        if (std::exchange(held.shard_is_loaded, false)) now_ -= shard_bytes(shape_, op.unit, bytes);
        return;
      case Kind::release:
        now_ -= whole;
        return;
      case Kind::load:
        now_ += optimizer_bytes(shape_, op.unit, bytes);
        return;
      case Kind::store:
        now_ -= optimizer_bytes(shape_, op.unit, bytes);
        return;
      case Kind::load_shard:
        held.shard_is_loaded = true;
        now_ += shard_bytes(shape_, op.unit, bytes);
        return;
      case Kind::store_shard:
        held.shard_is_loaded = false;
        now_ -= shard_bytes(shape_, op.unit, bytes);
        return;
      default:
        return;
    }
  }
};

double most(const std::vector<double>& curve) { return curve.empty() ? 0 : *std::ranges::max_element(curve); }

}  // namespace

double optimizer_bytes(const Shape& shape, int unit, int bytes_per_parameter) {
  const Unit& layer = at(shape, unit);
  const double master = bytes_per_parameter < 4 ? static_cast<double>(layer.trained()) : 0;
  return share(layer.kept_numbers() + master, shape.divided().optimizer_state, shape.ranks / layer.among) * 4;
}

double shard_bytes(const Shape& shape, int unit, int bytes_per_parameter) {
  const Unit& layer = at(shape, unit);
  return static_cast<double>(layer.numel) * layer.among / shape.ranks * bytes_per_parameter;
}

double input_bytes(const Profile& profile, int unit) {
  const Timing* const before = unit > 0 ? profile.find(Kind::forward_no_grad, unit - 1) : nullptr;
  return before ? std::max(0.0, before->growth) : 0;
}

MemoryCurve::MemoryCurve(const Profile& profile) : profile_(profile) {
  rest_ = std::max(0.0, profile.peak - most(MemoryWalk(baseline(profile.shape), profile).curve()));
}

std::vector<double> MemoryCurve::over(const Plan& plan) const {
  std::vector<double> curve = MemoryWalk(plan, profile_).curve();
  for (double& bytes : curve) bytes += rest_;
  return curve;
}

double MemoryCurve::peak(const Plan& plan) const { return most(over(plan)); }

double MemoryCurve::relief(const Plan& plan) const {
  Plan still = plan;
  const bool shards = !plan.shape.offload_parameters;
  std::erase_if(still.ops, [&](const Op& op) {
    return ((op.kind == Kind::store || op.kind == Kind::load) && !plan.shape.offloads(unit_of(op, plan.shape))) ||
           (shards && (op.kind == Kind::store_shard || op.kind == Kind::load_shard)) || op.kind == Kind::store_input ||
           op.kind == Kind::load_input;
  });
  return still.ops.size() == plan.ops.size() ? 0 : most(over(still)) - most(over(plan));
}

}  // namespace zs::plan
