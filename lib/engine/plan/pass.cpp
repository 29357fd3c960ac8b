// SPDX-License-Identifier: Apache-2.0
#include "plan/pass.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "plan/cost.hpp"
#include "plan/offload.hpp"
#include "plan/profile.hpp"

namespace zs::plan {
namespace {

// Describes what a pass changed in a plan, for people.

std::int64_t count_of(const Plan& plan, Kind kind) {
  return std::ranges::count_if(plan.ops, [&](const Op& op) { return op.kind == kind; });
}

/// "name a -> b" for each number that changed, joined by commas.
class Changes {
 public:
  template <typename Value>
  void add(const char* name, const Value& before, const Value& after) {
    if (before == after) return;
    text_ += (text_.empty() ? "" : ", ") + std::string(name) + " " + text(before) + " -> " + text(after);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  static std::string text(std::int64_t value) { return zs::to_text(value); }
  static std::string text(const std::string& value) { return value; }
};

/// "prefetch: collectives 40 -> 34, beside computation 0 -> 20; predicted step 0.0121 -> 0.0104 s, peak 45.2 -> 45.9
/// MiB"; the prediction needs a profile.
std::string effect(const std::string& pass, const Plan& before, const Plan& after, const Budget& budget) {
  Changes changes;
  const auto compare = [&](const char* name, auto count_of) { changes.add(name, count_of(before), count_of(after)); };
  const auto compare_kinds = [&](const char* name, Kind kind) {
    compare(name, [kind](const Plan& plan) { return count_of(plan, kind); });
  };
  compare("collectives", collectives);
  compare("of them during computation", overlapped);
  compare("parameters gathered at one time", peak_gathered);
  compare_kinds("optimizer states moved out", Kind::store);
  compare_kinds("shards moved out", Kind::store_shard);
  compare_kinds("shards loaded", Kind::load_shard);
  compare_kinds("inputs moved out", Kind::store_input);
  if (before.ops == after.ops) return pass + ": changes nothing";
  std::string text = pass + ": " + (changes.text().empty() ? "other order" : changes.text());
  if (!budget.profile) return text;
  const CostModel cost(*budget.profile, {});
  Changes predicted;
  const Prediction then = cost.predict(before), now = cost.predict(after);
  const auto seconds = [](const Prediction& prediction) { return to_rounded_text(prediction.seconds, 4) + " s"; };
  predicted.add("step", seconds(then), seconds(now));
  predicted.add("peak", to_bytes_text(then.memory), to_bytes_text(now.memory));
  return text + (predicted.text().empty() ? "" : "; predicted " + predicted.text());
}

bool reads(const Shape& shape, const Op& op, int unit) {
  return computes(op.kind) && (op.unit == unit || unit_of(op, shape).tied_to == unit);
}

std::int64_t numel_of(const Plan& plan, int unit) { return plan.shape.units[static_cast<std::size_t>(unit)].numel; }

/// The plan without re-gathering the `kept` units between their first gather and their last release.
Plan keep_gathered(const Plan& plan, const std::vector<bool>& kept) {
  Plan result = plan;
  result.ops.clear();
  std::vector<int> releases(plan.shape.units.size());
  for (const Op& op : plan.ops) {
    if (op.kind == Kind::release) ++releases[static_cast<std::size_t>(op.unit)];
  }
  std::vector<bool> gathered(plan.shape.units.size());
  for (auto at = plan.ops.begin(); at != plan.ops.end(); ++at) {
    const Op& op = *at;
    if (op.unit >= 0 && kept[static_cast<std::size_t>(op.unit)]) {
      const auto unit = static_cast<std::size_t>(op.unit);
      if (gathers(op.kind) && gathered[unit]) continue;
      if (op.kind == Kind::partition) continue;  // it is not gathered again
      // A shard is loaded for a gather, or for the update, which stays.
      const bool for_gather =
          op.kind == Kind::load_shard && std::find(at, plan.ops.end(), Op{Kind::gather, op.unit, -1}) != plan.ops.end();
      if (for_gather && gathered[unit]) continue;
      if (op.kind == Kind::gather_wait) {
        if (gathered[unit]) continue;
        gathered[unit] = true;
      }
      if (op.kind == Kind::release && --releases[unit] > 0) continue;
    }
    result.ops.push_back(op);
  }
  return result;
}

/// Seconds that a unit's gather takes for each parameter, as it was measured; nothing where it was not.
std::optional<double> gather_time(const Budget& budget, const Unit& unit, int index) {
  if (!budget.profile || unit.numel == 0) return {};
  const Timing* const start = budget.profile->find(Kind::gather, index);
  const Timing* const end = budget.profile->find(Kind::gather_wait, index);
  if (!start || !end) return {};
  return (start->seconds + end->seconds) / static_cast<double>(unit.numel);
}

/// Keeps units gathered from their first use in the step to their last, as many as the budget holds: those first whose
/// gathers take most time for each parameter, as it was measured, else the smallest.
Plan selective_gather(const Plan& plan, const Budget& budget) {
  if (!plan.shape.divided().parameters) return plan;
  std::vector<int> order(plan.shape.units.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) { return numel_of(plan, a) < numel_of(plan, b); });
  std::vector<double> times;  // by unit, where all were measured
  for (std::size_t unit = 0; unit < order.size(); ++unit) {
    const auto time = gather_time(budget, plan.shape.units[unit], static_cast<int>(unit));
    if (time) times.push_back(*time);
  }
  if (times.size() == order.size()) {
    std::ranges::stable_sort(
        order, [&](int a, int b) { return times[static_cast<std::size_t>(a)] > times[static_cast<std::size_t>(b)]; });
  }
  std::vector<bool> kept(plan.shape.units.size());
  Plan best = plan;
  for (const int unit : order) {
    kept[static_cast<std::size_t>(unit)] = true;
    Plan next = keep_gathered(plan, kept);
    if (peak_gathered(next) > budget.gathered_elements) break;
    best = std::move(next);
  }
  return best;
}

/// Moves each gather's start before the computation that precedes its wait, so that it travels while that runs; in
/// stages 1 and 2, right behind the unit's step. One gather is hoisted over one computation, within the budget; small
/// ones then begin together.
Plan prefetch(const Plan& plan, const Budget& budget) {
  Plan result = plan;
  const bool divided = plan.shape.divided().parameters;
  auto& ops = result.ops;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!gathers(ops[i].kind)) continue;
    const Op gather = ops[i];
    std::size_t to = i, before = i;  // before the computation that it hides behind, or behind its own step
    while (before > 0 && to == i) {
      const Op& previous = ops[before - 1];
      const bool ends =
          previous.unit == gather.unit && (previous.kind == Kind::release || previous.kind == Kind::step ||
                                           previous.kind == Kind::load_shard || previous.kind == Kind::partition);
      if (ends && previous.kind == Kind::step) to = before;
      if (ends) break;
      if (computes(previous.kind)) to = before - 1;
      --before;
    }
    if (to == i) continue;
    Plan moved = result;
    moved.ops.erase(moved.ops.begin() + static_cast<std::ptrdiff_t>(i));
    moved.ops.insert(moved.ops.begin() + static_cast<std::ptrdiff_t>(to), gather);
    if (!divided || peak_gathered(moved) <= std::max(budget.gathered_elements, peak_gathered(plan)))
      result = std::move(moved);
  }
  if (divided) {
    load_early(result);
    return coalesced(result, budget);
  }
  // The next step is the first to read the gathered parameters: all waits go to the end.
  std::stable_partition(ops.begin(), ops.end(), [](const Op& op) { return op.kind != Kind::gather_wait; });
  return coalesced(result, budget);
}

/// Whether an operation needs a unit's gradient as it is, or changes it. Its parameters and state may come and go
/// meanwhile.
bool touches_gradient(const Shape& shape, const Op& op, int unit) {
  switch (op.kind) {
    case Kind::accumulate:
    case Kind::reduce:
    case Kind::reduce_wait:
    case Kind::gather_grad:
    case Kind::gather_grad_wait:
    case Kind::step:
      return op.unit == unit;
    case Kind::norm:
      return true;
    default:
      return reads(shape, op, unit);
  }
}

/// Moves the completion of each reduction, and the addition of its result, behind the next computation, so that
/// gradients are sent while it runs.
Plan overlap_reduce(const Plan& plan, const Budget&) {
  Plan result = plan;
  auto& ops = result.ops;
  for (std::size_t i = ops.size(); i-- > 0;) {
    if (ops[i].kind != Kind::reduce_wait) continue;
    const Op wait = ops[i];
    const Op add{Kind::accumulate, wait.unit, wait.micro};
    const std::size_t end = i + (i + 1 < ops.size() && ops[i + 1] == add ? 2 : 1);
    std::size_t to = end - 1;  // the last operation that they go behind
    for (std::size_t next = end; next < ops.size(); ++next) {
      if (ops[next].kind == Kind::reduce_wait || touches_gradient(plan.shape, ops[next], wait.unit)) break;
      to = next;
      if (ops[next].kind == Kind::reduce) break;  // one in flight while the next one starts
    }
    while (to >= end && ops[to].with_next) --to;  // not between gathers that begin together
    std::rotate(ops.begin() + static_cast<std::ptrdiff_t>(i), ops.begin() + static_cast<std::ptrdiff_t>(end),
                ops.begin() + static_cast<std::ptrdiff_t>(to) + 1);
  }
  return result;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

const std::vector<Pass>& passes() {
  constexpr const char *kGathers = "early gathers", *kReductions = "late reductions",
                       *kStates = "optimizer states moved out";
  static const std::vector<Pass> passes = {
      {"offload_parameters", "move shards of parameters out between their uses in a step", "", kGathers,
       offload_parameters, false},
      {"selective_gather", "keep units gathered from first to last use while they fit the budget", "", kGathers,
       selective_gather},
      {"prefetch", "start each gather one computation early, and small ones together", kGathers, "", prefetch},
      {"overlap_reduce", "finish each gradient reduction one computation late", kReductions, "", overlap_reduce},
      {"offload_adam_states", "move optimizer state out while units compute, and back as memory allows", kStates,
       kStates, offload_adam_states, false},
      {"offload_adam_states_sync", "move all optimizer state out while units compute, and back for each update",
       kStates, kStates, offload_adam_states_sync, false},
      {"offload_activation", "move out the inputs that activation checkpointing keeps for backward", "", "",
       offload_activation, false},
  };
  return passes;
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const Pass& pass : passes()) names.push_back(pass.name);
  return names;
}

std::vector<std::string> usual_passes() {
  std::vector<std::string> names;
  for (const Pass& pass : passes()) {
    if (pass.usual) names.push_back(pass.name);
  }
  return names;
}

std::vector<std::string> free_passes() { return {"prefetch", "overlap_reduce"}; }

void require_same_units(const Shape& shape, const Profile& profile) {
  const auto& ours = shape.units;
  const auto& theirs = profile.shape.units;
  for (std::size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
    const auto text = [&](const std::vector<Unit>& units) {
      return i < units.size() ? units[i].name + " of " + std::to_string(units[i].numel) + " parameters" +
                                    (units[i].frozen > 0 ? ", " + std::to_string(units[i].frozen) + " frozen" : "")
                              : "nothing";
    };
    if (text(ours) != text(theirs))
      throw Error("the profile is of another model: its unit " + std::to_string(i) + " is " + text(theirs) +
                  ", and this one's is " + text(ours));
  }
}

Plan compile(const Plan& plan, const std::vector<std::string>& names, const Budget& budget) {
  if (budget.profile) require_same_units(plan.shape, *budget.profile);
  Plan result = plan;
  std::vector<std::string> provided;
  for (const std::string& name : names) {
    const auto found = std::ranges::find_if(passes(), [&](const Pass& pass) { return pass.name == name; });
    if (found == passes().end()) throw Error("there is no pass '" + name + "'" + did_you_mean(name, pass_names()));
    if (contains(result.passes, name)) throw Error("pass '" + name + "' is named twice");
    if (const std::string& condition = found->conflicts; contains(provided, condition)) {
      if (found->provides == condition)
        throw Error("there are " + condition + " already, and pass '" + name + "' does that too: leave one out");
      std::string order;
      for (const Pass& pass : passes()) {
        if (contains(names, pass.name)) order += (order.empty() ? "" : ",") + pass.name;
      }
      throw Error("pass '" + name + "' must run before there are " + condition + ": use --passes " + order);
    }
    Plan changed = found->run(result, budget);
    changed.effects.push_back(effect(name, result, changed, budget));
    changed.passes.push_back(name);
    result = std::move(changed);
    check(result);
    if (!found->provides.empty()) provided.push_back(found->provides);
  }
  return result;
}

namespace {

constexpr double kLonger = 1.2, kMost = 1e9;  // times the longest; bytes

/// Gathers that may begin together, [begin, end) of a plan's operations.
class Group {
 public:
  Group(Plan& plan, std::size_t begin, const Line& line, const Budget& budget)
      : plan_(plan), begin_(begin), end_(begin + 1), line_(line), budget_(budget) {
    add(plan.ops[begin]);
  }

  /// Takes in the next gather, if it may; false if not.
  bool extend() {
    auto& ops = plan_.ops;
    std::size_t next = end_;
    while (next < ops.size() && !gathers(ops[next].kind)) ++next;
    if (next == ops.size() || ops[next].kind != Kind::gather) return false;
    const Op op = ops[next];
    const double added = sent(op), together = line_.at(sent_ + added);
    if (!(together < kLonger * std::max(longest_, line_.at(added))) || operand_ + operand(op) > kMost) return false;
    Plan moved = plan_;
    const bool late = !plan_.shape.divided().parameters;  // a gather follows the update: those in front wait for it
    for (std::size_t i = end_; i < next; ++i) {
      if (late ? has(ops[i].unit) : ops[i].unit == op.unit) return false;
    }
    const auto at = [&](std::size_t i) { return moved.ops.begin() + static_cast<std::ptrdiff_t>(i); };
    if (late)
      std::rotate(at(begin_), at(end_), at(next));
    else
      std::rotate(at(end_), at(next), at(next + 1));
    if (!late && peak_gathered(moved) > std::max(budget_.gathered_elements, peak_gathered(plan_))) return false;
    const std::size_t shift = late ? next - end_ : 0;
    begin_ += shift, end_ += shift;
    moved.ops[end_ - 1].with_next = true;
    plan_ = std::move(moved);
    add(op);
    ++end_;
    return true;
  }
  std::size_t end() const { return end_; }

 private:
  Plan& plan_;
  std::size_t begin_, end_;
  const Line& line_;
  const Budget& budget_;
  double sent_ = 0, longest_ = 0, operand_ = 0;

  double sent(const Op& op) const { return sent_bytes(op, plan_.shape, budget_.profile->bytes_per_parameter); }
  double operand(const Op& op) const { return operand_bytes(op, plan_.shape, budget_.profile->bytes_per_parameter); }
  bool has(int unit) const {
    return std::any_of(plan_.ops.begin() + static_cast<std::ptrdiff_t>(begin_),
                       plan_.ops.begin() + static_cast<std::ptrdiff_t>(end_),
                       [&](const Op& op) { return op.unit == unit; });
  }
  void add(const Op& op) {
    sent_ += sent(op);
    operand_ += operand(op);
    longest_ = std::max(longest_, line_.at(sent(op)));
  }
};

}  // namespace

Plan coalesced(const Plan& plan, const Budget& budget) {
  if (!budget.profile || plan.shape.ranks == 1) return plan;
  const CostModel model(*budget.profile, {});
  const Line* const line = model.line(Kind::gather);
  if (!line) return plan;
  Plan result = plan;
  for (std::size_t i = 0; i < result.ops.size(); ++i) {
    if (result.ops[i].kind != Kind::gather) continue;
    Group group(result, i, *line, budget);
    while (group.extend()) {
    }
    i = group.end() - 1;
  }
  return result;
}

}  // namespace zs::plan
