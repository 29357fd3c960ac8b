// SPDX-License-Identifier: Apache-2.0
#include "zero/state.hpp"

#include <optional>

#include "device/tensor.hpp"

namespace zs::zero {

UnitState::UnitState(const unit::Unit& unit, comm::Group& group, Pool& pool, const Layout& layout,
                     const MakeOptimizer& make, const Places& places)
    : parameters(unit, group, pool, layout, places),
      gradient(unit, group, pool, layout),
      optimizer(make(layout, parameters.owned())),
      whole_(&unit),
      group_(&group),
      layout_(layout) {}

void fill_kept(const Layout& layout, std::int64_t begin, const at::Tensor& values, const Fill& fill) {
  std::size_t at = 0;
  for (const comm::Slice part : layout.kept()) {
    const auto size = static_cast<std::size_t>(part.size());
    fill(begin + part.begin, device::floats(values).subspan(at, size));
    at += size;
  }
}

void UnitState::set_parameters(const Fill& fill) {
  const at::Tensor values = at::empty({layout_.kept_numel()});
  fill_kept(layout_, begin_, values, fill);
  set_kept(values);
}

void UnitState::set_kept(const at::Tensor& values) {
  // They go to a GPU once; it rounds them.
  const at::Tensor on_device = values.to(device::torch_device(group_->device()));
  parameters.set(on_device);
  // A rank that owns all keeps all; what it owns is in the first part.
  const comm::Slice owned = layout_.owned;
  const std::int64_t first = layout_.kept()[0].begin;
  optimizer->set(device::view(on_device).part(owned.begin - first, owned.end - first));
}

at::Tensor UnitState::whole_parameters() {
  const at::TensorOptions options = device::options(group_->device(), at::kFloat);
  at::Tensor trained = at::empty({0}, options);
  if (layout_.trained > 0) {
    see_masters([&](const device::View& masters) {
      trained = gather(*group_, masters, layout_.trained, "all-gather of the fp32 parameters of " + whole_->name());
    });
  }
  return all_parts(layout_.trained == layout_.numel ? trained : at::cat({trained, parameters.frozen()}));
}

at::Tensor UnitState::all_parts(const at::Tensor& part) const {
  if (!sharing_ || part.numel() == 0) return part;
  const at::Tensor here = part.to(device::torch_device(sharing_->device()));
  return gather(*sharing_, device::view(here), here.numel() * sharing_->size(), "all-gather of " + whole_->name());
}

at::Tensor UnitState::masters() {
  at::Tensor here;
  see_masters([&](const device::View& masters) {
    const at::Tensor on_device = device::tensor(masters);
    const bool stays = !parameters.shard() && !optimizer->state().moves();
    here = stays ? on_device.to(at::kCPU) : on_device.to(at::kCPU, /*non_blocking=*/false, /*copy=*/true);
  });
  return here;
}

void UnitState::see_masters(const std::function<void(const device::View&)>& see) {
  std::optional<ScopedLoad> shard, state;
  if (optimizer->has_master())
    state.emplace(optimizer->state());
  else if (parameters.shard())
    shard.emplace(*parameters.shard());
  see(optimizer->master(optimizer->has_master() ? device::View{} : parameters.owned()));
}

void UnitState::load() {
  if (OffloadableBuffer* const shard = parameters.shard()) shard->load();
  optimizer->state().load();
}

std::int64_t UnitState::bytes_here() {
  const OffloadableBuffer* const shard = parameters.shard();
  return optimizer->state().bytes_here() + (shard ? shard->bytes_here() : 0) +
         (input.defined() ? static_cast<std::int64_t>(input.nbytes()) : 0);
}

void UnitState::keep() {
  load();
  if (parameters.take_shard()) device::copy(parameters.owned(), optimizer->master({}));
}

void UnitState::update(const Update& update) {
  load();
  parameters.take_shard();
  optimizer->update(update, gradient.value(), parameters.owned());
  parameters.changed();
}

}  // namespace zs::zero
