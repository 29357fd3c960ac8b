// SPDX-License-Identifier: Apache-2.0
// The rows of a tensor as float32, for the loops of vector.hpp: float32 rows in place, bfloat16 rows in a separate
// buffer.
#pragma once
#include <tuple>

#include "device/operations.hpp"
#include "kernel/vector.hpp"
#include "unit/tensor.hpp"

namespace zs::kernel {

class Rows {
 public:
  /// Rows along the last dimension. REQUIRES: contiguous, float32 or bfloat16; the tensor outlives this.
  explicit Rows(const at::Tensor& tensor) : size_(tensor.size(-1)), count_(tensor.numel() / size_) {
    const bool narrow = tensor.scalar_type() == at::kBFloat16;
    if (narrow) {
      narrow_ = static_cast<device::Bfloat16*>(tensor.data_ptr());  // null if there are no rows
      wide_ = at::empty({size_}, at::kFloat);
    }
    floats_ = narrow ? wide_.data_ptr<float>() : tensor.data_ptr<float>();
  }

  std::int64_t count() const { return count_; }
  std::int64_t size() const { return size_; }
  /// A row for reading or changing: valid until the next one.
  float* read(std::int64_t row) const {
    if (narrow_) widen(narrow_ + row * size_, floats_, size_);
    return place(row);
  }
  /// The memory for a new row; write() stores it into the tensor.
  float* place(std::int64_t row) const { return narrow_ ? floats_ : floats_ + row * size_; }
  void write(std::int64_t row) const {
    if (narrow_) kernel::narrow(floats_, narrow_ + row * size_, size_);
  }

 private:
  std::int64_t size_, count_;
  device::Bfloat16* narrow_ = nullptr;  // null: float32
  at::Tensor wide_;
  float* floats_;
};

/// Calls compute(row, rows...) for each row, on all threads: no bit may depend on the order. All tensors have the same
/// number of rows.
template <typename... Tensors, typename Compute>
void each_row(const std::tuple<Tensors...>& tensors, const Compute& compute) {
  const Rows first(std::get<0>(tensors));
  const std::int64_t least = 1 + (1 << 14) / (1 + first.size());  // rows that a thread is worth
  device::in_parts(first.count(), least, [&](std::int64_t begin, std::int64_t end) {
    const std::tuple rows = std::apply([](const auto&... tensor) { return std::tuple{Rows(tensor)...}; }, tensors);
    for (std::int64_t row = begin; row < end; ++row) std::apply([&](auto&... of) { compute(row, of...); }, rows);
  });
}

}  // namespace zs::kernel
