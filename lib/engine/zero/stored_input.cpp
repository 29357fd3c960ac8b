// SPDX-License-Identifier: Apache-2.0
#include "zero/stored_input.hpp"

#include <ATen/ops/empty_strided.h>

#include "base/error.hpp"
#include "device/tensor.hpp"

namespace zs::zero {
namespace {

device::View bytes_of(const at::Tensor& tensor, const device::Device& device) {
  return {static_cast<std::byte*>(tensor.data_ptr()), static_cast<std::int64_t>(tensor.nbytes()), device::Type::byte,
          device};
}

}  // namespace

void StoredInput::move_out(Store& store, const std::string& name, at::Tensor& input) {
  if (!input.is_non_overlapping_and_dense())
    throw Error("the " + name + " is not contiguous: leave out the pass offload_activation");
  const auto bytes = static_cast<std::int64_t>(input.nbytes());
  if (block_ < 0 || bytes != bytes_) block_ = store.add(name, bytes);  // a batch of another size is another block
  store_ = &store;
  bytes_ = bytes;
  form_ = Form{input.sizes().vec(), input.strides().vec(), input.options(), device::view(input).device};
  store.start_store(block_, bytes_of(input, form_->device));
  input = at::Tensor();
}

void StoredInput::start_load() { store_->start_load(block_); }

void StoredInput::load(at::Tensor& input) {
  if (!form_) return;
  const at::Tensor loaded = at::empty_strided(form_->sizes, form_->strides, form_->options);
  store_->finish_load(block_, bytes_of(loaded, form_->device));
  form_.reset();
  input = loaded.requires_grad_(true);
}

}  // namespace zs::zero
