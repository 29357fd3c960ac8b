// SPDX-License-Identifier: Apache-2.0
// Converts between LibTorch's tensors and views of memory: the only place that does. Uses LibTorch for operations that
// are equal on every device (fill, copy, cast).
#pragma once
#include <ATen/core/Tensor.h>

#include <span>
#include <string_view>

#include "device/view.hpp"

namespace zs::device {

at::Device torch_device(const Device& device);
at::ScalarType torch_type(Type type);
/// The type of a tensor's numbers; byte if it has no name here.
Type type_of(at::ScalarType type);
at::TensorOptions options(const Device& device, at::ScalarType type = at::kFloat);

/// A tensor over the view's memory, which keeps its owner.
at::Tensor tensor(const View& view);
/// A view of a tensor's numbers. REQUIRES: it is contiguous, and outlives the view.
View view(const at::Tensor& tensor);
/// The same, for a float32 tensor on the host.
std::span<float> floats(const at::Tensor& tensor);

/// A tensor of n numbers whose memory point_at() sets and removes: LibTorch neither owns nor resizes it.
at::Tensor placeholder(std::int64_t n, at::ScalarType type, const Device& device);
/// Also changes views of the placeholder. nullptr: accessing it from here on faults.
void point_at(const at::Tensor& placeholder, std::byte* data);

/// Sets all numbers to zero.
void clear(const View& view);
/// Copies numbers to a view of the same length and converts them to its type, between any two devices.
void copy(const View& to, const View& from);

/// A 128-bit hash (XXH3) of memory on any device, added in order.
class Hash {
 public:
  Hash();
  ~Hash();
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;
  void add(const View& view);
  void add(std::string_view bytes);
  /// 32 hex digits.
  std::string text() const;

 private:
  struct State;
  State* state_;
};

/// Flips the lowest bit of a float32.
void flip_lowest_bit(const View& one);

}  // namespace zs::device
