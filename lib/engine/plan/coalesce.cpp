// SPDX-License-Identifier: Apache-2.0
#include "plan/pass.hpp"

#include <algorithm>

#include "plan/cost.hpp"

namespace zs::plan {
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
