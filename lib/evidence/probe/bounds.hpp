// SPDX-License-Identifier: Apache-2.0
// The largest difference of two sides at a place. If all inputs have the same bits on both sides, the output may differ
// only by the rounding of its type, also if the forward pass has another type. Else it may differ by the rounding of
// the type in which the gradient was computed, and by the difference that earlier steps have left.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "probe/diagnosis.hpp"

namespace zs::probe {

class Bounds {
 public:
  explicit Bounds(const Run* floor) : floor_(floor) {}

  /// Looks at the inputs of a step. `from`: parameters and state before it, or null.
  void begin(std::int64_t number, const Side& a, const Side& b, const Tensors* from_a, const Tensors* from_b);

  /// The bound of a gradient, a local gradient, or a copy of one.
  double gradient(const std::string& parameter, const std::string& place = "grad") const;
  double state(const std::string& place, const std::string& parameter) const;
  double output(const std::string& name, const std::string& dtype) const;
  double buffer(const std::string& parameter) const;
  /// The bound of a copy in 16 bits, from the bound of its parameter.
  double copy(const std::string& parameter) const;
  /// The bound of a number of the whole step: a loss, or a norm of gradients, whose sums may be of 16 bits.
  double number(bool norm) const;
  /// The bound of an update, relative to it. `size`: the parameter's norm. `moved`: the norm of the update.
  double update(const std::string& parameter, double size, double moved) const;
  /// The relative bound of a parameter, if the step before was not recorded. `moved`: how far it went since the last
  /// step that was, `apart`: how far apart the sides were there, `steps`: how many steps ago.
  double parameter(const std::string& name, double size, double moved, double apart, std::int64_t steps) const;

  /// Whether a difference within the bound is still no rounding: a factor explains it.
  bool is_factor(const Sketch& a, const Sketch& b, double distance, double bound, std::int64_t elements) const;
  /// Whether one of two updates of Muon is longer than the other: rounding adds what is orthogonal to a direction,
  /// which makes it longer by the square of the distance.
  bool is_longer(const std::string& parameter, const Sketch& a, const Sketch& b, double distance) const;
  /// The same as is_factor() of single ranges of a tensor. `pairs`: what both sides have of it, of each micro-batch.
  /// Rounding moves a range in any direction; a change of the computation may move some of them along the range itself.
  bool are_factors(const std::vector<std::pair<Sketch, Sketch>>& pairs, double bound) const;

  /// The type in which a parameter's gradient was computed.
  std::string computed(const std::string& parameter) const;
  /// A gradient's distance, by parameter.
  void measured(const std::string& parameter, double distance) { gradients_[parameter] = distance; }
  /// A distance of parameters that was found to be rounding.
  void drifted(double distance) { drift_ = std::max(drift_, distance); }
  /// Something had other bits.
  void differed() { clean_ = false; }
  bool clean() const { return clean_; }

 private:
  double grown(const Tensors& mine, const Tensors* moved, const std::string& name) const;
  bool same(const std::string& name) const;
  bool same_before(const std::string& name) const;
  bool same_states(const std::string& parameter) const;
  bool same_inputs(const std::string& parameter) const;
  double turned(const std::string& parameter) const;
  double usual_update(const std::string& parameter, double gradient) const;

  const Run* floor_;
  std::int64_t number_ = 0;
  const Side *left_ = nullptr, *right_ = nullptr;
  const Tensors *from_a_ = nullptr, *from_b_ = nullptr;
  const Step* floor_step_ = nullptr;
  bool locals_same_ = false, gradients_same_ = false, clean_ = true, clean_before_ = true;
  std::size_t addends_ = 0;
  std::set<std::string> options_same_, muon_;   ///< parameters
  std::map<std::string, const Group*> groups_;  ///< of the left side's parameters
  std::map<std::string, double> gradients_;
  double drift_ = 0, clipped_ = 0;  ///< clipped_: by how much the two factors of clipping have differed
};

/// Whether all gradients have the same bits; false if there are none.
bool gradients_same(const Step& a, const Step& b);
/// The same, and for the gradients of micro-batches, if they are recorded: whether the samples had the same effect.
bool effects_same(const Step& a, const Step& b);

/// The factor by which clipping multiplies gradients; 1 without a bound, nothing if the norm is not known.
std::optional<double> clip_factor(const Step& step);

/// The rounding of a sum of some terms, each with the same bits on both sides.
double sum_rounding(const std::string& dtype, std::size_t terms);

inline constexpr double kFloors = 8;  ///< a difference of up to this many floors is rounding
/// The bound in Diagnosis::judged of a tensor that is rounding alone: its norm may be any.
inline constexpr double kLeftOut = 1e9;

}  // namespace zs::probe
