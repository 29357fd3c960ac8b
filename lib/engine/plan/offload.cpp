// SPDX-License-Identifier: Apache-2.0
#include "plan/offload.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "plan/memory_curve.hpp"

namespace zs::plan {
namespace {

/// Operations that go in front of others, by the place of these.
class Insertions {
 public:
  explicit Insertions(const Plan& plan) : plan_(plan), by_place_(plan.ops.size() + 1) {}

  /// Gathers that begin together stay together: in front of the first of them.
  void put(std::size_t place, const Op& op) {
    while (place > 0 && plan_.ops[place - 1].with_next) --place;
    by_place_[place].push_back(op);
  }
  Plan plan() const {
    Plan result = plan_;
    result.ops.clear();
    for (std::size_t i = 0; i <= plan_.ops.size(); ++i) {
      result.ops.insert(result.ops.end(), by_place_[i].begin(), by_place_[i].end());
      if (i < plan_.ops.size()) result.ops.push_back(plan_.ops[i]);
    }
    return result;
  }

 private:
  const Plan& plan_;
  std::vector<std::vector<Op>> by_place_;
};

std::size_t place_of(const Plan& plan, const Op& op) {
  return static_cast<std::size_t>(std::ranges::find(plan.ops, op) - plan.ops.begin());
}

bool has_trained(const Plan& plan, int unit) { return plan.shape.units[static_cast<std::size_t>(unit)].trained() > 0; }

/// In front of the update of the unit before, or of the norm: a unit's state is loaded while that is updated.
std::size_t place_of_load(const Plan& plan, int unit) {
  int before = unit - 1;
  while (before >= 0 && !has_trained(plan, before)) --before;
  return place_of(plan, before < 0 ? Op{Kind::norm} : Op{Kind::step, before});
}

std::vector<int> units_of(const Plan& plan) {
  std::vector<int> units(plan.shape.units.size());
  std::iota(units.begin(), units.end(), 0);
  return units;
}
/// Units with optimizer state in device memory between steps.
std::vector<int> units_with_state(const Plan& plan) {
  std::vector<int> units = units_of(plan);
  std::erase_if(units, [&](int unit) {
    return !has_trained(plan, unit) || plan.shape.offloads(plan.shape.units[static_cast<std::size_t>(unit)]);
  });
  return units;
}

/// Calls `move` with the plan and the first of `units`: as few as it takes to fit the budget, or all if that is not
/// known.
template <typename Move>
Plan fitted_by(const Plan& plan, const Budget& budget, const std::vector<int>& units, Move move) {
  if (!budget.profile || budget.memory <= 0) return move(units);
  const MemoryCurve curve(*budget.profile);
  const double most = budget.memory;
  if (curve.peak(plan) <= most) return plan;
  for (std::size_t count = 1; count < units.size(); ++count) {
    Plan moved = move({units.begin(), units.begin() + static_cast<std::ptrdiff_t>(count)});
    if (curve.peak(moved) <= most) return moved;
  }
  return move(units);
}

/// The most that memory comes to from each operation on, up to the norm.
std::vector<double> most_from(const std::vector<double>& curve, std::size_t norm) {
  std::vector<double> most(norm + 1);
  for (std::size_t i = norm; i-- > 0;) most[i] = std::max(most[i + 1], curve[i]);
  return most;
}

/// With the optimizer state of `units` away from the beginning of the step on, each until memory allows.
Plan without_states(const Plan& plan, const Budget& budget, std::vector<int> units) {
  std::ranges::sort(units);  // as they are updated
  Insertions insertions(plan);
  for (const int unit : units) insertions.put(0, {Kind::store, unit});
  std::vector<double> most;
  const std::size_t norm = place_of(plan, {Kind::norm});
  if (budget.profile && budget.memory > 0) most = most_from(MemoryCurve(*budget.profile).over(plan), norm);
  double away = 0;
  const auto bytes = [&](int unit) {
    return optimizer_bytes(plan.shape, unit, budget.profile ? budget.profile->bytes_per_parameter : 4);
  };
  for (const int unit : units) away += bytes(unit);
  for (const int unit : units) {
    away -= bytes(unit);
    std::size_t place = place_of_load(plan, unit);
    if (!most.empty()) {
      const auto fits = std::ranges::find_if(most, [&](double bytes) { return bytes - away <= budget.memory; });
      place = std::min(place, static_cast<std::size_t>(fits - most.begin()));
    }
    insertions.put(place, {Kind::load, unit});
  }
  return insertions.plan();
}

}  // namespace

Plan offload_adam_states(const Plan& plan, const Budget& budget) {
  std::vector<int> units = units_with_state(plan);
  std::ranges::reverse(units);  // those first that are updated last, and have most time to come back
  return fitted_by(plan, budget, units,
                   [&](const std::vector<int>& moved) { return without_states(plan, budget, moved); });
}

Plan offload_adam_states_sync(const Plan& plan, const Budget&) {
  Insertions insertions(plan);
  for (const int unit : units_with_state(plan)) {
    insertions.put(0, {Kind::store, unit});
    insertions.put(place_of(plan, {Kind::step, unit}), {Kind::load, unit});
  }
  return insertions.plan();
}

Plan offload_parameters(const Plan& plan, const Budget& budget) {
  if (!plan.shape.divided().parameters || plan.shape.offload_parameters) return plan;
  std::vector<int> units = units_of(plan);
  std::ranges::stable_sort(units,
                           [&](int a, int b) { return shard_bytes(plan.shape, a, 1) > shard_bytes(plan.shape, b, 1); });
  return fitted_by(plan, budget, units, [&](const std::vector<int>& moved) {
    Insertions insertions(plan);
    for (const int unit : moved) {
      bool gathered = false;
      for (std::size_t i = 0; i < plan.ops.size(); ++i) {
        const Op& op = plan.ops[i];
        if (op.unit != unit) continue;
        if (op.kind == Kind::gather && gathered) insertions.put(i, {Kind::load_shard, unit});
        if (op.kind == Kind::gather_wait && !std::exchange(gathered, true))
          insertions.put(i + 1, {Kind::store_shard, unit});
      }
      insertions.put(place_of_load(plan, unit), {Kind::load_shard, unit});
    }
    Plan result = insertions.plan();
    load_early(result);
    return result;
  });
}

Plan offload_activation(const Plan& plan, const Budget& budget) {
  if (!plan.shape.activation_checkpointing) return plan;  // graphs of autograd keep what they need
  // The first unit reads the batch; the last one keeps its graph. Inputs that stay away longest come first.
  std::vector<int> units = units_of(plan);
  // Units without backward keep no input.
  const int first = first_trained(plan.shape);
  std::erase_if(units, [&](int unit) {
    return unit == 0 || unit < first || unit + 1 == static_cast<int>(plan.shape.units.size());
  });
  return fitted_by(plan, budget, units, [&](const std::vector<int>& moved) {
    std::vector<bool> away(plan.shape.units.size());
    for (const int unit : moved) away[static_cast<std::size_t>(unit)] = true;
    Insertions insertions(plan);
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      const Op& op = plan.ops[i];
      if (op.kind == Kind::forward_no_grad && away[static_cast<std::size_t>(op.unit)])
        insertions.put(i + 1, {Kind::store_input, op.unit, op.micro});
      // It comes back while the unit behind it runs backward.
      if (op.kind == Kind::backward && op.unit > 0 && away[static_cast<std::size_t>(op.unit) - 1])
        insertions.put(i, {Kind::load_input, op.unit - 1, op.micro});
    }
    return insertions.plan();
  });
}

namespace {

/// Of all ranks that divide the unit.
double elements(const Unit& unit) { return static_cast<double>(unit.trained()) * unit.among; }

}  // namespace

void offload_share(Shape& shape, double ratio) {
  double surplus = 0;  // elements that are away beyond `ratio` of those so far
  for (Unit& unit : shape.units) {
    const double numbers = elements(unit), stays = surplus - ratio * numbers, away = stays + numbers;
    unit.stays = ratio <= 0 || std::abs(stays) < std::abs(away);
    surplus = unit.stays ? stays : away;
  }
}

double offloaded_share(const Shape& shape) {
  double away = 0;
  for (const Unit& unit : shape.units) away += shape.offloads(unit) ? elements(unit) : 0;
  const double total = trained(shape);
  return total > 0 ? away / total : 0;
}

}  // namespace zs::plan
