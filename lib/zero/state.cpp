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
  parameters.set(flat);
  optimizer->set(device::view(flat).part(layout_.owned.begin, layout_.owned.end));
}

at::Tensor UnitState::gather_parameters() {
  return gather(*group_, optimizer->master(), layout_.numel, "all-gather of the fp32 parameters of " + unit_->name());
}

}  // namespace zs::zero
