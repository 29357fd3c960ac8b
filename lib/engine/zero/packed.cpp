// SPDX-License-Identifier: Apache-2.0
#include "zero/packed.hpp"

#include <algorithm>
#include <future>

#include "device/tensor.hpp"

namespace zs::zero {

using Packing = unit::Parameter::Packing;

namespace {

/// REQUIRES: it is held in 4 bits.
device::Nf4 form_of(const unit::Parameter& parameter) {
  return {parameter.numel(), parameter.packing == Packing::nested_nf4};
}

}  // namespace

std::int64_t packed_bytes(const unit::Unit& unit) {
  std::int64_t bytes = 0;
  for (const unit::Parameter& parameter : unit.parameters()) {
    if (parameter.packing != Packing::none) bytes += form_of(parameter).bytes();
  }
  return bytes;
}

Packed::Packed(const unit::Unit& unit, comm::Group& group, Pool& pool, const Layout& layout, Workspace* workspace)
    : name_(unit.name()),
      group_(&group),
      pool_(&pool),
      type_(layout.type),
      divided_(layout.divided.parameters && group.size() > 1),
      workspace_(workspace) {
  constexpr std::int64_t kAligned = 8;  // elements that a GPU stores at once
  for (std::size_t i = 0; i < unit.parameters().size(); ++i) {
    const unit::Parameter& parameter = unit.parameters()[i];
    if (parameter.packing == Packing::none) continue;
    const device::Nf4 form = form_of(parameter);
    matrices_.push_back({i, &parameter, form, bytes_, elements_});
    bytes_ += form.bytes();
    elements_ += (form.numel + kAligned - 1) / kAligned * kAligned;
  }
  if (empty()) return;
  flat_ = device::placeholder(elements_, device::torch_type(type_), group.device());
  held_ = pool.take(divided_ ? slice().size() : bytes_);
  const std::int64_t wanted = elements_ * device::size(type_);
  if (!workspace_->memory || workspace_->memory.bytes() < wanted) {
    workspace_->holder = at::Tensor();
    workspace_->memory = {};
    workspace_->memory = device::allocate(group.device(), wanted);
  }
}

const Packed::Matrix& Packed::matrix(std::size_t parameter) const {
  return *std::ranges::find(matrices_, parameter, &Matrix::parameter);
}

comm::Slice Packed::slice() const { return comm::slice(bytes_, group_->rank(), group_->size()); }

at::Tensor Packed::view(std::size_t parameter) const {
  const Matrix& found = matrix(parameter);
  return flat_.narrow(0, found.element, found.form.numel).view(found.is->shape);
}

Packed::Place Packed::place(std::size_t parameter) const {
  return {matrix(parameter).at, matrix(parameter).form.bytes()};
}

void Packed::set(const Fill& fill, const std::function<bool(std::size_t, std::span<std::byte>)>& stored, bool at_once) {
  if (empty()) return;
  const at::Tensor whole = at::empty({bytes_}, at::TensorOptions(at::kByte));
  auto* const bytes = static_cast<std::byte*>(whole.data_ptr());
  std::vector<std::future<void>> begun;
  for (const Matrix& matrix : matrices_) {
    const std::span<std::byte> into(bytes + matrix.at, static_cast<std::size_t>(matrix.form.bytes()));
    if (stored(matrix.parameter, into)) continue;
    begun.push_back(std::async(at_once ? std::launch::async : std::launch::deferred, [&matrix, &fill, into] {
      std::vector<float> values(static_cast<std::size_t>(matrix.form.numel));
      fill(matrix.is->offset, values);
      device::to_nf4(values, matrix.form, into);
    }));
  }
  for (std::future<void>& one : begun) one.get();
  const comm::Slice mine = divided_ ? slice() : comm::Slice{0, bytes_};
  device::copy(held_.view(device::Type::byte, mine.size()), device::view(whole).part(mine.begin, mine.end));
  if (workspace_->holder.is_same(flat_)) workspace_->holder = at::Tensor();
}

std::optional<comm::Gathered> Packed::ready_to_gather() {
  if (empty() || !divided_) return {};
  gathered_ = pool_->take(bytes_);
  return comm::Gathered{held_.view(device::Type::byte, slice().size()), whole()};
}

void Packed::widen(const device::View& bytes, const device::View& numbers) const {
  for (const Matrix& matrix : matrices_)
    device::from_nf4(bytes.part(matrix.at, matrix.at + matrix.form.bytes()), matrix.form,
                     numbers.part(matrix.element, matrix.element + matrix.form.numel));
}

void Packed::widen() {
  if (empty() || workspace_->holder.is_same(flat_)) return;
  if (workspace_->holder.defined()) device::point_at(workspace_->holder, nullptr);
  widen(whole(), workspace_->memory.view(type_, elements_));
  device::point_at(flat_, workspace_->memory.data());
  workspace_->holder = flat_;
}

at::Tensor Packed::gather_bytes() {
  const device::View mine = held_.view(device::Type::byte, divided_ ? slice().size() : bytes_);
  return gather(*group_, mine, bytes_, "all-gather of the matrices in 4 bits of " + name_);
}

at::Tensor Packed::bytes() { return gather_bytes().to(at::kCPU); }

at::Tensor Packed::values() {
  const at::Tensor bytes = gather_bytes();
  const at::Tensor numbers = at::empty({elements_}, device::options(group_->device(), device::torch_type(type_)));
  widen(device::view(bytes), device::view(numbers));
  std::vector<at::Tensor> matrices;
  for (const Matrix& matrix : matrices_) matrices.push_back(numbers.narrow(0, matrix.element, matrix.form.numel));
  return at::cat(matrices).to(at::kFloat);
}

}  // namespace zs::zero
