// SPDX-License-Identifier: Apache-2.0
#include "state/diff.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "compare/elements.hpp"
#include "compare/tensors.hpp"
#include "state/items.hpp"

namespace zs::state {
namespace {

using compare::Verdict;
using tensorfile::Tensor;

/// In the order in which a lossy resume would change things: weights, then moments, then values.
std::vector<const Items::value_type*> in_order(const Items& items) {
  constexpr std::array<std::string_view, 8> kFirst = {"gradient", "gradient norms", "float32",   "weight", "bf16",
                                                      "f16",      "exp_avg",        "exp_avg_sq"};
  const auto place = [&](const Items::value_type* each) {
    const auto found = std::ranges::find(kFirst, each->second.kind) - kFirst.begin();
    return found + (each->second.tensor ? 0 : each->second.kind == "step" ? 1 : 2);
  };
  std::vector<const Items::value_type*> order;
  for (const auto& each : items) order.push_back(&each);
  std::ranges::stable_sort(order, {}, place);
  return order;
}

bool weights_alone(const State& state) {
  return state.facts.empty() && std::ranges::all_of(state.parameters, [](const Parameter& one) {
           return !one.master && one.moments.empty() && one.gradients.empty() && one.hyper.empty() && !one.step;
         });
}

class Comparison {
 public:
  Comparison(const State& a, const State& b, const compare::Tolerance& tolerance)
      : a_(a), b_(b), tolerance_(tolerance) {}

  Difference run(const Names& names, Extent extent) {
    const auto [left, right] = joined_names(a_, b_, names);
    Items of_a = items_of(a_, left, names, true), of_b = items_of(b_, right, names, false);
    leave_derived(of_a, of_b), leave_derived(of_b, of_a);
    compare::Holdings held_a, held_b;
    for (const auto& [key, item] : of_a) held_a.add(key, count(item));
    for (const auto& [key, item] : of_b) held_b.add(key, count(item));
    compare::Ledger ledger(held_a, held_b);
    const Items all_a = of_a;
    leave_out(of_a, of_b, a_, b_, extent, compare::Holder::a, ledger);
    leave_out(of_b, all_a, b_, a_, extent, compare::Holder::b, ledger);
    for (const auto* const each : in_order(of_a)) {
      const auto& [key, item] = *each;
      const auto other = of_b.find(key);
      if (other == of_b.end()) {
        ++row(item).only_a, only_a_[item.kind].push_back(item.name);
        continue;
      }
      compared(key, item, other->second, ledger);
    }
    for (const auto* const each : in_order(of_b)) {
      const auto& [key, item] = *each;
      if (!of_a.contains(key)) ++row(item).only_b, only_b_[item.kind].push_back(item.name);
    }
    for (const State* const side : {&a_, &b_}) {
      if (!side->faults.empty()) ledger.at_least(Verdict::failed);
    }
    made_.verdict = ledger.settle();
    tell();
    return std::move(made_);
  }

 private:
  const State& a_;
  const State& b_;
  const compare::Tolerance& tolerance_;
  Difference made_;
  std::map<std::string, Compared> rows_;
  std::vector<std::string> order_;
  std::map<std::string, std::vector<std::string>> only_a_, only_b_;
  std::vector<std::pair<std::string, std::string>> first_;
  std::vector<std::string> not_finite_, not_compared_;

  static std::int64_t count(const DiffItem& item) { return item.tensor ? item.tensor->count() : 1; }

  /// Removes what no file has, unless a file of the other side has it.
  static void leave_derived(Items& items, const Items& other) {
    std::erase_if(items, [&](const auto& each) {
      const auto found = other.find(each.first);
      return each.second.derived && (found == other.end() || found->second.derived);
    });
  }

  /// Removes items that the other side lacks and need not have: another name of a tensor that it has; what one layout
  /// or program alone says of itself; and beside weights alone everything else, unless it was asked for.
  void leave_out(Items& items, const Items& other, const State& side, const State& other_side, Extent extent,
                 compare::Holder holder, compare::Ledger& ledger) {
    const bool weights = extent == Extent::common && weights_alone(other_side) && !weights_alone(side);
    const bool other_program = a_.framework != b_.framework, programs = other_program && extent != Extent::every,
               forms = other_program || a_.layout != b_.layout || a_.stage != b_.stage;
    std::set<std::string> weighed, kinds;
    for (const auto& [key, item] : other) {
      if (item.weight) weighed.insert(item.name);
    }
    std::erase_if(items, [&](const auto& each) {
      const auto& [key, item] = each;
      if (other.contains(key)) return false;
      const bool of_program = item.kind == "training" || item.kind == "config" || item.spare;
      const bool left = ((item.alias || item.of_layout) && (forms || weights)) || (programs && of_program) ||
                        (weights && (!item.weight || weighed.contains(item.name)));
      if (left) ledger.excuse(holder, key, count(item));
      if (left && !item.alias && !item.of_layout) kinds.insert(item.kind);
      return left;
    });
    if (!kinds.empty())
      not_compared_.push_back(zs::joined(kinds) + " of " + side.path + ": " + other_side.path +
                              (weights ? " holds weights alone" : " is of another program"));
    if (!side.unread.empty()) not_compared_.push_back(some_of(side.unread, 4) + " of " + side.path);
  }

  Compared& row(const DiffItem& item) {
    const auto [found, fresh] = rows_.try_emplace(item.kind, Compared{item.kind, item.tensor != nullptr});
    if (fresh) order_.push_back(item.kind);
    return found->second;
  }

  void first(const std::string& what, const std::string& x, const std::string& y, const std::string& more = "") {
    if (!first_.empty()) return;
    first_ = {{"what", what}, {a_.path, x}, {b_.path, y}};
    if (!more.empty()) first_.emplace_back("distance", more);
  }

  void compared(const std::string& key, const DiffItem& x, const DiffItem& y, compare::Ledger& ledger) {
    Compared& into = row(x);
    ++into.compared;
    static const std::set<std::string_view> values = {"training", "schedule", "scaler",   "random",
                                                      "config",   "model",    "optimizer"};
    const std::string what = x.kind + (values.contains(x.kind) && !x.tensor ? " " : " of ") + x.name;
    if (!x.tensor || !y.tensor) {
      const bool equal = !x.tensor && !y.tensor && x.text == y.text;
      ledger.compared(key, equal ? Verdict::exact : Verdict::different, count(x), count(y));
      ++into.elements;
      if (equal) return;
      ++into.differing;
      return first(what, x.tensor ? "a tensor" : x.text, y.tensor ? "a tensor" : y.text);
    }
    const std::string defect_a = x.tensor->defect(), defect_b = y.tensor->defect();
    if (!defect_a.empty() || !defect_b.empty()) {
      ledger.compared(key, Verdict::failed, count(x), count(y));
      return first(what, defect_a.empty() ? "whole" : defect_a, defect_b.empty() ? "whole" : defect_b);
    }
    if (x.tensor->dtype != y.tensor->dtype || x.tensor->shape != y.tensor->shape) {
      ledger.compared(key, Verdict::different, count(x), count(y));
      into.elements += count(x), into.differing += count(x);
      const auto told = [](const Numbers& numbers) {
        return std::string(name_of(numbers.dtype)) + " " + tensorfile::to_text(numbers.shape);
      };
      return first(what, told(*x.tensor), told(*y.tensor));
    }
    const Tensor left = x.tensor->joined(what), right = y.tensor->joined(what);
    const compare::Elements found = compare::elements(left, right, tolerance_);
    into.elements += found.compared, into.differing += found.differing;
    into.largest.join(found.largest);
    // Gradients of a step that loss scaling skipped need not be finite.
    const bool skipped = a_.skipped.value_or(0) > 0 && b_.skipped.value_or(0) > 0 && x.kind.starts_with("gradient");
    ledger.compared(key,
                    found.refused > 0                  ? Verdict::different
                    : found.not_finite > 0 && !skipped ? Verdict::failed
                    : found.differing > 0              ? Verdict::within
                                                       : Verdict::exact,
                    found.compared);
    if (found.not_finite > 0) not_finite_.push_back(what);
    if (found.first >= 0) {
      const bool earliest = first_.empty();
      const compare::Spelt u = compare::spelt(left, found.first), v = compare::spelt(right, found.first);
      first(what + ", element " + to_text(found.first), u.decimal + " (" + u.hexadecimal + ")",
            v.decimal + " (" + v.hexadecimal + ")",
            to_text(compare::ulp_at(left, right, found.first)) + " ulp; " + to_text(found.differing) + " of " +
                to_text(found.compared) + " elements differ" +
                (tolerance_.exact() ? "" : ", " + to_text(found.refused) + " beyond the tolerance"));
      if (earliest && x.tensor->shape.size() > 1)
        first_.emplace_back("place", compare::place_in(x.tensor->shape, found.first));
    }
    left.storage->forget(), right.storage->forget();
  }

  /// "exp_avg, step are only in A".
  std::string lacking() const {
    std::vector<std::string> reasons;
    for (const auto& [names, path] : {std::pair{&only_a_, &a_.path}, {&only_b_, &b_.path}}) {
      std::vector<std::string> kinds;
      for (const auto& [kind, held] : *names) kinds.push_back(kind);
      if (!kinds.empty())
        reasons.push_back(some_of(kinds, 4) + (kinds.size() == 1 ? " is" : " are") + " only in " + *path);
    }
    return zs::joined(reasons, "; ");
  }

  void tell() {
    auto& lines = made_.lines;
    lines.emplace_back("verdict", std::string(compare::name(made_.verdict)));
    for (const State* const side : {&a_, &b_}) {
      if (!side->faults.empty())
        lines.emplace_back(
            "reason", side->faults.front() +
                          (side->faults.size() > 1
                               ? "; and " + to_text(static_cast<std::int64_t>(side->faults.size() - 1)) + " more faults"
                               : ""));
    }
    if (std::ranges::all_of(rows_, [](const auto& each) { return each.second.compared == 0; }) && a_.faults.empty() &&
        b_.faults.empty())
      lines.emplace_back("reason", "they have nothing in common");
    else if (made_.verdict == Verdict::inconclusive)
      lines.emplace_back("reason", "what both have is equal; " + lacking());
    lines.insert(lines.end(), first_.begin(), first_.end());
    if (!not_finite_.empty()) lines.emplace_back("not finite", some_of(not_finite_, 4));
    for (const auto& [names, path] : {std::pair{&only_a_, &a_.path}, {&only_b_, &b_.path}}) {
      for (const auto& [kind, held] : *names) lines.emplace_back("only in " + *path, kind + ": " + some_of(held, 4));
    }
    for (const std::string& what : not_compared_) lines.emplace_back("not compared", what);
    for (const auto& [key, side] : {std::pair{"layout_a", &a_}, {"layout_b", &b_}}) {
      std::string text = side->framework + (side->version.empty() ? "" : " " + side->version) + ", " + side->layout;
      if (side->step) text += ", step " + to_text(*side->step);
      if (side->ranks) text += ", " + to_text(*side->ranks) + (*side->ranks == 1 ? " rank" : " ranks");
      lines.emplace_back(key, text);
    }
    for (const std::string& kind : order_) made_.kinds.push_back(rows_[kind]);
  }
};

}  // namespace

Sheet Difference::sheet() const {
  Sheet rows{{"kind", "compared", "elements", "differing", "abs", "rel", "only_a", "only_b"}, {}};
  for (const Compared& one : kinds) {
    rows.rows.push_back({one.kind, to_text(one.compared), to_text(one.elements), to_text(one.differing),
                         to_text(one.largest.absolute), to_text(one.largest.relative), to_text(one.only_a),
                         to_text(one.only_b)});
  }
  return rows;
}

Difference diff(const State& a, const State& b, const compare::Tolerance& tolerance, const Names& names,
                Extent extent) {
  return Comparison(a, b, tolerance).run(names, extent);
}

}  // namespace zs::state
