// SPDX-License-Identifier: Apache-2.0
// The input that a unit keeps from forward to backward, while it is moved out of device memory.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "zero/store.hpp"

namespace zs::zero {

class StoredInput {
 public:
  /// Stores `input` and frees its memory; `name` is its name in errors. REQUIRES: it is not stored already. Throws
  /// zs::Error if it is not contiguous.
  void move_out(Store& store, const std::string& name, at::Tensor& input);
  /// Starts to load it. REQUIRES: move_out().
  void start_load();
  /// Restores it, as a leaf of the autograd graph, if it is stored.
  void load(at::Tensor& input);

 private:
  struct Form {
    std::vector<std::int64_t> sizes, strides;
    at::TensorOptions options;
    device::Device device;
  };
  Store* store_ = nullptr;
  int block_ = -1;
  std::int64_t bytes_ = 0;    // of the block
  std::optional<Form> form_;  // of the stored input
};

}  // namespace zs::zero
