// SPDX-License-Identifier: Apache-2.0
#include "zero/state.hpp"

#include "device/tensor.hpp"

namespace zs::zero {

UnitState::UnitState(const unit::Unit& unit, comm::Group& group, Pool& pool, const Layout& layout,
                     const MakeOptimizer& make)
    : parameters(unit, group, pool, layout),
      gradient(unit, group, pool, layout),
      optimizer(make(layout, parameters.owned())),
      unit_(&unit),
      group_(&group),
      layout_(layout) {}

void UnitState::set_parameters(const at::Tensor& flat) {
  set_parameters([&](std::int64_t begin, std::span<float> values) {
    const std::span<float> from = device::floats(flat).subspan(static_cast<std::size_t>(begin), values.size());
    std::copy(from.begin(), from.end(), values.begin());
  });
}

void UnitState::set_parameters(const std::function<void(std::int64_t, std::span<float>)>& fill) {
  // A rank that owns all keeps all.
  const comm::Slice kept = parameters.kept(), owned = layout_.owned;
  const at::Tensor values = at::empty({kept.size()});
  fill(kept.begin, device::floats(values));
  parameters.set(values);
  optimizer->set(device::view(values).part(owned.begin - kept.begin, owned.end - kept.begin));
}

at::Tensor UnitState::gather_parameters() {
  return gather(*group_, optimizer->master(), layout_.numel, "all-gather of the fp32 parameters of " + unit_->name());
}

}  // namespace zs::zero
