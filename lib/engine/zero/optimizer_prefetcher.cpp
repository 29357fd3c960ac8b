// SPDX-License-Identifier: Apache-2.0
#include "zero/optimizer_prefetcher.hpp"

#include <algorithm>

namespace zs::zero {

using plan::Kind;

namespace {

bool goes_forward(const plan::Op& op) { return op.kind == Kind::forward || op.kind == Kind::forward_no_grad; }

}  // namespace

void OptimizerPrefetcher::before(const plan::Plan& plan, std::size_t at,
                                 const std::function<OffloadableBuffer&(int unit)>& state) {
  const plan::Op& op = plan.ops[at];
  if (at == 0) begun_ = 0;
  if (!plan::computes(op.kind) && op.kind != Kind::norm && op.kind != Kind::load) return;
  const std::int64_t level = held_() - store_->lent();
  if (peak_ > 0) rise_[late_] = std::max(rise_[late_], level - last_);
  peak_ = std::max(peak_, level);
  last_ = level;
  late_ = std::none_of(plan.ops.begin() + static_cast<std::ptrdiff_t>(at), plan.ops.end(), goes_forward);
  const std::int64_t room = peak_ - level - rise_[late_];  // after the operation, too
  store_->allow(room);
  if (!late_) return;
  for (begun_ = std::max(begun_, at); begun_ < plan.ops.size(); ++begun_) {
    const plan::Op& load = plan.ops[begun_];
    // If a pass moves this state, the plan says when to load it.
    if (load.kind != Kind::load || !plan.shape.offloads(plan.shape.units[static_cast<std::size_t>(load.unit)]))
      continue;
    OffloadableBuffer& offloaded = state(load.unit);
    if (store_->lent() + offloaded.bytes() > room) return;
    offloaded.start_load();
  }
}

}  // namespace zs::zero
