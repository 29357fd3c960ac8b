// SPDX-License-Identifier: Apache-2.0
// The self-test of quantized collectives (ZeRO++): repeats the collective with exact numbers; a difference that
// quantization cannot explain ends the training.
#pragma once
#include <string>

#include "comm/codec.hpp"

namespace zs::zero {

/// A quantized collective's result and the exact one, element by element.
struct QuantizedCheck {
  std::string name;        ///< "parameters of transformer.h.3"
  std::int64_t begin = 0;  ///< index of the first element in its unit
  device::View integers;   ///< the result of the quantized collective, of any type
  device::View exact;      ///< the result of the exact one
  device::View bound;      ///< the largest allowed difference, float32
};

/// Throws comm::SharedError, on every rank, if they differ by more on any rank: it names the largest difference. Where
/// the exact value is not finite, the quantized one must not be either. COLLECTIVE.
void require_within(comm::Group& group, const QuantizedCheck& both);

/// This rank's slice of the exact sum of all ranks' leaves, and of the allowed difference of the quantized sum.
class ExactSum {
 public:
  /// COLLECTIVE.
  ExactSum(comm::Group& group, const comm::Codec& codec, const device::View& leaf, const std::string& what);
  device::View sum() const { return memory_.view(device::Type::float32, 2 * count_).part(0, count_); }
  device::View bound() const { return memory_.view(device::Type::float32, 2 * count_).part(count_, 2 * count_); }

 private:
  std::int64_t count_;
  device::Buffer memory_;
};

}  // namespace zs::zero
