// SPDX-License-Identifier: Apache-2.0
#include "zero/state.hpp"

#include <cstring>

namespace zs::zero {
namespace {

at::Tensor over(void* data, std::int64_t n, at::ScalarType dtype) {
  return at::from_blob(data, {n}, at::TensorOptions(dtype));
}

std::vector<at::Tensor> leaves_of(const unit::Unit& unit, const at::Tensor& flat) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& view : unit::views(unit, flat)) leaves.push_back(view.detach().requires_grad_(true));
  return leaves;
}

}  // namespace

UnitState::UnitState(const unit::Unit& unit, comm::Group& group, Pool& pool, const Layout& layout)
    : unit_(&unit),
      group_(&group),
      pool_(&pool),
      layout_(layout),
      slice_(comm::slice(unit.numel(), group.rank(), group.size())),
      owned_(layout.stage == 0 ? comm::Slice{0, unit.numel()} : slice_),
      sharded_(layout.stage == 3 && group.size() > 1) {
  const std::int64_t n = numel();
  // A tensor whose memory is set and taken away by hand: LibTorch must neither own nor resize it.
  const auto bytes = static_cast<std::size_t>(n) * element_size();
  const c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, at::DataPtr(nullptr, at::kCPU), nullptr, false);
  flat_ = at::empty({0}, at::TensorOptions(layout.dtype)).set_(storage, 0, {n}, {1});
  leaves_ = leaves_of(unit, flat_);
  lent_ = leaves_of(unit, flat_);
  if (sharded_) {
    shard_ = pool.take(slice_.size() * static_cast<std::int64_t>(element_size()));
  } else {
    whole_ = pool.take(static_cast<std::int64_t>(bytes));
    set_storage(whole_.get());
  }
  if (low_precision()) {
    master_memory_ = at::empty({owned_.size()});
    master_ = master_memory_.data_ptr<float>();
  } else {
    master_ = reinterpret_cast<float*>(compute_owned());
  }
}

std::byte* UnitState::compute_owned() const {
  return sharded_ ? shard_.get() : whole_.get() + static_cast<std::size_t>(owned_.begin) * element_size();
}

void UnitState::set_storage(std::byte* data) { flat_.storage().set_data_ptr_noswap(at::DataPtr(data, at::kCPU)); }

void UnitState::set_parameters(const at::Tensor& flat) {
  std::memcpy(master_, flat.data_ptr<float>() + owned_.begin, static_cast<std::size_t>(owned_.size()) * sizeof(float));
  publish();
  if (sharded_ || owned_.size() == numel()) return;
  const at::Tensor whole = over(whole_.get(), numel(), layout_.dtype);
  whole.copy_(flat);
}

at::Tensor UnitState::gather_owned(const float* owned, const std::string& what) {
  at::Tensor whole = at::empty({numel()});
  if (owned_.size() == numel()) {
    std::memcpy(whole.data_ptr(), owned, static_cast<std::size_t>(numel()) * sizeof(float));
  } else {
    group_->all_gather(owned, whole.data_ptr(), numel(), sizeof(float), what)->wait();
  }
  return whole;
}

at::Tensor UnitState::gather_parameters() {
  return gather_owned(master_, "all-gather of the fp32 parameters of " + unit_->name());
}

at::Tensor UnitState::compute_parameters() {
  if (!sharded_)
    return over(whole_.get(), numel(), layout_.dtype).to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  at::Tensor whole = at::empty({numel()}, layout_.dtype);
  group_
      ->all_gather(shard_.get(), whole.data_ptr(), numel(), element_size(),
                   "all-gather of the parameters of " + unit_->name())
      ->wait();
  return whole.to(at::kFloat);
}

at::Tensor UnitState::gather_gradient() {
  return gather_owned(gradient_, "all-gather of the gradient of " + unit_->name());
}

void UnitState::flip_gradient_bit(std::int64_t element) {
  if (element < owned_.begin || element >= owned_.end) return;
  auto* const bits = reinterpret_cast<std::byte*>(gradient_ + (element - owned_.begin));
  bits[0] ^= std::byte{1};  // little-endian, as everything zs writes
}

void UnitState::publish() {
  if (!low_precision()) return;
  over(compute_owned(), owned_.size(), layout_.dtype).copy_(over(master_, owned_.size(), at::kFloat));
}

void UnitState::start_gather() {
  if (group_->size() == 1) return;
  const std::string what = "all-gather of " + unit_->name();
  if (sharded_) pending_whole_ = pool_->take(numel() * static_cast<std::int64_t>(element_size()));
  std::byte* const whole = sharded_ ? pending_whole_.get() : whole_.get();
  gather_ = group_->all_gather(compute_owned(), whole, numel(), element_size(), what);
}

void UnitState::finish_gather() {
  if (!gather_) return;
  gather_->wait();
  gather_.reset();
  if (!sharded_) return;
  whole_ = std::move(pending_whole_);
  set_storage(whole_.get());
}

void UnitState::release() {
  if (!sharded_) return;
  set_storage(nullptr);
  whole_.reset();
}

void UnitState::expect_gradient(const std::vector<at::Tensor>& leaves) {
  Buffer& buffer = low_precision() ? leaf_low_ : leaf_;
  if (!buffer) {
    const std::int64_t bytes = numel() * static_cast<std::int64_t>(element_size());
    buffer = pool_->take(bytes);
    std::memset(buffer.get(), 0, static_cast<std::size_t>(bytes));
  }
  const auto gradients = unit::views(*unit_, over(buffer.get(), numel(), layout_.dtype));
  for (std::size_t i = 0; i < leaves.size(); ++i) leaves[i].mutable_grad() = gradients[i];
}

void UnitState::forget_gradient(const std::vector<at::Tensor>& leaves) {
  for (const at::Tensor& leaf : leaves) leaf.mutable_grad() = at::Tensor();
}

void UnitState::finish_leaf_gradient() {
  if (!low_precision()) return;
  leaf_ = pool_->take(numel() * static_cast<std::int64_t>(sizeof(float)));
  over(leaf_.get(), numel(), at::kFloat).copy_(over(leaf_low_.get(), numel(), layout_.dtype));
  leaf_low_.reset();
}

comm::TreeAccumulator& UnitState::tree(std::int64_t n) {
  if (!tree_) {
    tree_.emplace(n, [this](std::int64_t elements) {
      const Buffer buffer = pool_->take(elements * static_cast<std::int64_t>(sizeof(float)));
      return std::shared_ptr<float[]>(buffer, as<float>(buffer));
    });
  }
  return *tree_;
}

void UnitState::accumulate(int micro_steps) {
  if (micro_steps == 1) return;  // the leaf is the sum
  tree(numel()).add(as<float>(leaf_));
  leaf_.reset();
}

void UnitState::start_reduce() {
  float* const source = local_sum();
  if (group_->size() == 1) {
    gradient_ = source;
    return;
  }
  // Stages 0 and 1 keep the whole gradient until the update anyway; from stage 2 on only the shard stays.
  if (layout_.stage >= 2) reduced_ = pool_->take(slice_.size() * static_cast<std::int64_t>(sizeof(float)));
  gradient_ = reduced_ ? as<float>(reduced_) : source + slice_.begin;
  reduce_ = group_->reduce_scatter(source, gradient_, numel(), "reduce-scatter of " + unit_->name());
}

void UnitState::finish_reduce() {
  if (!reduce_) return;
  reduce_->wait();
  reduce_.reset();
}

void UnitState::accumulate_shard(int micro_steps) {
  if (group_->size() > 1) leaf_.reset();  // alone, it is the sum
  if (micro_steps == 1) return;
  tree(slice_.size()).add(gradient_);
  leaf_.reset();
  reduced_.reset();
  gradient_ = tree_->count() == micro_steps ? tree_->sum() : nullptr;
}

void UnitState::start_gather_gradient() {
  if (group_->size() == 1) return;
  gradient_ -= slice_.begin;  // the slice was reduced in its place
  gather_ = group_->all_gather(gradient_ + slice_.begin, gradient_, numel(), sizeof(float),
                               "all-gather of the gradient of " + unit_->name());
}

void UnitState::finish_gather_gradient() {
  if (!gather_) return;
  gather_->wait();
  gather_.reset();
}

void UnitState::drop_gradient() {
  gradient_ = nullptr;
  leaf_.reset();
  reduced_.reset();
  tree_.reset();
}

}  // namespace zs::zero
