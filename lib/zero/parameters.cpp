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

Parameters::Parameters(const unit::Unit& unit, comm::Group& group, Pool& pool, const Layout& layout, Store* store)
    : name_(unit.name()),
      group_(&group),
      pool_(&pool),
      layout_(layout),
      flat_(device::placeholder(layout.numel, device::torch_type(layout.type), group.device())),
      leaves_(leaves_of(unit, flat_)),
      tied_(leaves_of(unit, flat_)) {
  if (sharded() && store) {
    kept_.emplace(store, "parameters of " + unit.name(), group.device(),
                  layout.slice.size() * device::size(layout.type));
  } else if (sharded()) {
    slice_ = pool.take(layout.type, layout.slice.size());
  } else {
    whole_ = pool.take(layout.type, layout.numel);
    device::point_at(flat_, whole_.data());
  }
}

device::View Parameters::owned() const {
  const device::Buffer& shard = kept_ ? kept_->memory() : slice_;
  return sharded() ? device::View{shard.data(), layout_.slice.size(), layout_.type, group_->device()}
                   : view(whole_).part(layout_.owned.begin, layout_.owned.end);
}

void Parameters::set(const at::Tensor& values) {
  if (kept_) kept_->load();
  device::copy(sharded() ? owned() : view(whole_), device::view(values));
  if (kept_) kept_->put_back();
}

at::Tensor Parameters::whole() {
  std::optional<Look> look;
  if (kept_) look.emplace(*kept_);
  return gather(*group_, sharded() ? owned() : view(whole_), layout_.numel, "all-gather of the parameters of " + name_)
      .to(at::kFloat);
}

void Parameters::start_gather() {
  if (group_->size() == 1 && !sharded()) return;
  if (sharded()) pending_whole_ = pool_->take(layout_.type, layout_.numel);
  if (kept_) kept_->load();
  if (group_->size() == 1) return device::copy(view(pending_whole_), owned());
  gather_ = group_->all_gather(owned(), view(sharded() ? pending_whole_ : whole_), "all-gather of " + name_);
}

void Parameters::finish_gather() {
  if (gather_) gather_->wait();
  gather_.reset();
  if (!pending_whole_) return;
  if (kept_) kept_->drop();
  whole_ = std::move(pending_whole_);
  device::point_at(flat_, whole_.data());
}

void Parameters::release() {
  if (!sharded()) return;
  device::point_at(flat_, nullptr);
  whole_.reset();
}

}  // namespace zs::zero
