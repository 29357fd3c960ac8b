// SPDX-License-Identifier: Apache-2.0
// The parameters of a unit on their way to other ranks in fewer bytes than they have: as integers (ZeRO++), or as the 8
// bits that products take.
#pragma once
#include <memory>

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

}  // namespace zs::zero
