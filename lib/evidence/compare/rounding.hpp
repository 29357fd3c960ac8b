// SPDX-License-Identifier: Apache-2.0
// Whether two recordings of one training differ only as another order of the same sums would make them. Values prove
// it; norms alone do not: a gradient with the opposite sign has the same norm.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compare/probe_file.hpp"
#include "compare/tensors.hpp"

namespace zs::compare {

/// From the mildest: `unknown` is within the bound by its norms, but no values were kept.
enum class Apart { rounding, unknown, beyond };

struct Judged {
  Apart apart = Apart::rounding;
  std::string why{};  ///< "the norms are 0.2 and 0.6"
};

/// One side's values of a tensor; empty if none were kept.
using Values = std::vector<Part>;

/// Judges the tensors that differ, step by step.
class Rounding {
 public:
  /// The largest effect of another order of the same sums, relative to the norm, for a type's digits: 256 units of the
  /// last place. That is the growth of an error over a sum of 2^16 terms of random signs.
  static double bound(const std::string& dtype);
  /// From here on gradients are computed in this type by two programs, which round in other places: 16 units of the
  /// last place of it, as activations and their gradients are rounded at each layer, and of a loss one. "": in the type
  /// of the tensors, or by one program.
  void computed_in(const std::string& dtype) { computed_ = dtype; }

  Judged loss(double a, double b) const;
  /// Judges a gradient of any step.
  Judged gradient(const Probed& a, const Probed& b, const Values& values_a, const Values& values_b) const;
  /// Judges a parameter after a step. An optimizer that divides a gradient by its own size moves an element by the
  /// learning rate even if its gradient is only rounding: such elements, by the gradient's values of this and earlier
  /// steps, may be further apart. `gradient` is empty if no values of it were kept.
  Judged parameter(const std::string& name, const Probed& a, const Probed& b, const Values& values_a,
                   const Values& values_b, const Values& gradient);

 private:
  std::string computed_;
  std::map<std::string, std::vector<bool>> noise_;  // by parameter: elements whose gradient was only rounding
};

}  // namespace zs::compare
