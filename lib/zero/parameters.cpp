// SPDX-License-Identifier: Apache-2.0
#include "zero/parameters.hpp"

#include "device/tensor.hpp"

namespace zs::zero {
namespace {

std::vector<at::Tensor> leaves_of(const unit::Unit& unit, const at::Tensor& flat) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& view : unit::views(unit, flat)) leaves.push_back(view.detach().requires_grad_(true));
  return leaves;
}

}  // namespace

at::Tensor gather(comm::Group& group, const device::View& mine, std::int64_t numel, const std::string& what) {
  const at::Tensor whole = at::empty({numel}, device::options(mine.device, device::torch_type(mine.type)));
  if (mine.count == numel)
    device::copy(device::view(whole), mine);
  else
    group.all_gather(mine, device::view(whole), what)->wait();
  return whole.to(at::kCPU);
}

Parameters::Parameters(const unit::Unit& unit, comm::Group& group, Pool& pool, const Layout& layout)
    : name_(unit.name()),
      group_(&group),
      pool_(&pool),
      layout_(layout),
      flat_(device::placeholder(layout.numel, device::torch_type(layout.type), group.device())),
      leaves_(leaves_of(unit, flat_)),
      tied_(leaves_of(unit, flat_)) {
  if (layout.shards_parameters) {
    slice_ = pool.take(layout.type, layout.slice.size());
  } else {
    whole_ = pool.take(layout.type, layout.numel);
    device::point_at(flat_, whole_.data());
  }
}

device::View Parameters::owned() const {
  return slice_ ? slice_.view(layout_.type, layout_.slice.size())
                : view(whole_).part(layout_.owned.begin, layout_.owned.end);
}

void Parameters::set(const at::Tensor& values) { device::copy(slice_ ? owned() : view(whole_), device::view(values)); }

at::Tensor Parameters::whole() {
  return gather(*group_, slice_ ? owned() : view(whole_), layout_.numel, "all-gather of the parameters of " + name_)
      .to(at::kFloat);
}

void Parameters::start_gather() {
  if (group_->size() == 1) return;
  if (slice_) pending_whole_ = pool_->take(layout_.type, layout_.numel);
  gather_ = group_->all_gather(owned(), view(slice_ ? pending_whole_ : whole_), "all-gather of " + name_);
}

void Parameters::finish_gather() {
  if (!gather_) return;
  gather_->wait();
  gather_.reset();
  if (!slice_) return;
  whole_ = std::move(pending_whole_);
  device::point_at(flat_, whole_.data());
}

void Parameters::release() {
  if (!slice_) return;
  device::point_at(flat_, nullptr);
  whole_.reset();
}

}  // namespace zs::zero
