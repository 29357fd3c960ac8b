// SPDX-License-Identifier: Apache-2.0
// The update of each element of a unit, and the layout of its state.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "comm/slice.hpp"
#include "device/view.hpp"
#include "optimizer/optimizer.hpp"
#include "unit/unit.hpp"
#include "zero/directions.hpp"

namespace zs::zero {

/// A range of elements with the same update: [begin, end) of the owned part.
struct Segment {
  std::int64_t begin = 0, end = 0;
  bool decay = true;
  optimizer::Rule rule = optimizer::Rule::adamw;
  Matrix matrix{};       ///< for Rule::muon: the matrix that contains it
  comm::Slice tensor{};  ///< for Rule::adamw_8bit: the parameter that contains it, in the unit
};

/// A segment's part of values of all segments, or none of none.
inline device::View part(const device::View& view, const Segment& s) {
  return view.count > 0 ? view.part(s.begin, s.end) : view;
}

/// The updates of a unit.
struct Recipe {
  optimizer::Settings settings{};
  std::vector<Segment> segments{};   ///< of the owned part, without gaps
  std::vector<Matrix> matrices{};    ///< of the unit, orthogonalised as a whole
  std::vector<comm::Slice> coded{};  ///< parameters of the unit whose state has 8 bits
  bool updates = true;               ///< false: no updates, and no state
};
/// Whether a unit is a block: neither the first nor the last.
inline bool is_block(const unit::Units& units, std::size_t unit) { return unit > 0 && unit + 1 < units.size(); }
Recipe recipe(const optimizer::Settings& settings, const unit::Unit& unit, bool block, comm::Slice owned,
              bool decay_all);
/// The rule of a unit's parameter.
optimizer::Rule rule(const optimizer::Settings& settings, const unit::Parameter& parameter, bool block);
/// Numbers of optimizer state of a whole unit, besides its parameters; of 8 bits, four count as one.
std::int64_t kept(const optimizer::Settings& settings, const unit::Unit& unit, bool block);
/// Its matrices that are orthogonalised as a whole.
std::vector<Matrix> matrices(const optimizer::Settings& settings, const unit::Unit& unit, bool block);

/// The layout of the state: the concatenated numbers `slot` of all elements whose rule keeps more than `slot`.
class Slots {
 public:
  Slots() = default;
  explicit Slots(const Recipe& recipe);
  std::int64_t count(int slot) const { return counts_[static_cast<std::size_t>(slot)]; }
  std::int64_t count() const { return counts_[0] + counts_[1]; }
  /// The index in a slot of an element of the owned part. REQUIRES: its rule keeps that number.
  std::int64_t place(int slot, std::int64_t element) const;

 private:
  std::vector<Segment> segments_;
  std::array<std::int64_t, optimizer::kMostStates> counts_{};
};

}  // namespace zs::zero
