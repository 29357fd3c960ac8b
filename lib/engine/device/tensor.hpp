// SPDX-License-Identifier: Apache-2.0
// Between LibTorch's tensors and our views of memory: the only door. What LibTorch does alike on every device (fill,
// copy, cast) is done by it.
#pragma once
#include <ATen/core/Tensor.h>

#include <span>
#include <string_view>

#include "device/view.hpp"

namespace zs::device {

at::Device torch_device(const Device& device);
at::ScalarType torch_type(Type type);
/// The type that has a tensor's numbers, byte where ours has no name for it.
Type type_of(at::ScalarType type);
at::TensorOptions options(const Device& device, at::ScalarType type = at::kFloat);

/// A tensor over the view's memory, which stays its owner's.
at::Tensor tensor(const View& view);
/// A tensor's numbers. REQUIRES: it is contiguous, and kept as long as they are used.
View view(const at::Tensor& tensor);
/// The same, of a tensor of float32 on the host.
std::span<float> floats(const at::Tensor& tensor);

/// A tensor of n numbers whose memory point_at() sets and takes away: LibTorch neither owns nor resizes it.
at::Tensor placeholder(std::int64_t n, at::ScalarType type, const Device& device);
/// Views of the placeholder follow it. nullptr: reading it from here on faults.
void point_at(const at::Tensor& placeholder, std::byte* data);

/// Zeros.
void clear(const View& view);
/// The numbers of one view into another of the same length, in its type, between any two devices.
void copy(const View& to, const View& from);

/// A 128-bit hash (XXH3) of memory, added in order, wherever it lies.
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
