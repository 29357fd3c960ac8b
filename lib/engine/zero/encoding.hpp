// SPDX-License-Identifier: Apache-2.0
// The parameters of a unit on their way to other ranks in fewer bytes than they have: as integers (ZeRO++), or as the 8
// bits that products take.
#pragma once
#include <memory>
#include <string>

#include "comm/codec.hpp"
#include "unit/unit.hpp"
#include "zero/layout.hpp"

namespace zs::zero {

class Encoding {
 public:
  virtual ~Encoding() = default;

  /// Bytes of the whole unit.
  virtual std::int64_t bytes() const = 0;
  /// Converts this rank's slice of the numbers to its part of the bytes, which comes back. COLLECTIVE.
  virtual device::View encode(const device::View& mine, const device::View& bytes) = 0;
  virtual void decode(const device::View& bytes, const device::View& numbers) const = 0;
  /// All numbers of the unit on the host as they come out.
  virtual at::Tensor travelled(const at::Tensor& numbers) const = 0;
  /// The numbers are other ones than before.
  virtual void changed() {}
  /// The rounding that a self-test bounds; null where products take the same bits as without it.
  virtual const comm::Codec* rounding() const { return nullptr; }
  /// Makes the next encode() write a wrong scale, once. REQUIRES: rounding().
  virtual void plant_scale() {}
};

/// The one of a layout; null where numbers travel as they are. `group` must outlive it.
std::unique_ptr<Encoding> encoding(const unit::Unit& unit, comm::Group& group, const Layout& layout);

// The self-test of quantized collectives (ZeRO++): repeats the collective with exact numbers; a difference that
// quantization cannot explain ends the training.

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
