// SPDX-License-Identifier: Apache-2.0
// Concatenated one-dimensional tensors, and ranges of their elements.
#pragma once
#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "tensorfile/tensor.hpp"

namespace zs::checkpoints {

/// A range of a one-dimensional tensor. REQUIRES: the tensor contains it.
inline tensorfile::Tensor run(tensorfile::Tensor flat, std::int64_t begin, std::int64_t count) {
  flat.offset += begin * (flat.strides.empty() ? 1 : flat.strides[0]);
  flat.shape = {count};
  if (flat.strides.size() != 1) flat.strides = {1};
  return flat;
}

class Flat {
 public:
  void add(const tensorfile::Tensor& tensor) {
    if (tensor.shape.size() != 1) throw Error("a flat tensor of shape " + tensorfile::to_text(tensor.shape));
    parts_.push_back(tensor), count_ += tensor.count();
  }
  std::int64_t count() const { return count_; }
  tensorfile::Dtype dtype() const { return parts_.empty() ? tensorfile::Dtype::f32 : parts_.front().dtype; }

  /// Passes the elements from `begin` on as tensors, each with its distance from `begin`. REQUIRES: they exist.
  template <class Take>
  void cut(std::int64_t begin, std::int64_t count, Take take) const {
    std::int64_t at = 0;
    for (const tensorfile::Tensor& part : parts_) {
      const std::int64_t from = std::max(begin, at), to = std::min(begin + count, at + part.count());
      if (from < to) take(run(part, from - at, to - from), from - begin);
      at += part.count();
    }
  }

 private:
  std::vector<tensorfile::Tensor> parts_;
  std::int64_t count_ = 0;
};

}  // namespace zs::checkpoints
