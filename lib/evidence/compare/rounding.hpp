// SPDX-License-Identifier: Apache-2.0
// Whether a difference between two recordings of one training is of the kind that another order of the same sums
// leaves. It is shown by values, not guessed: equal norms alone are also those of a gradient with its sign turned.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compare/probe_file.hpp"
#include "compare/tensors.hpp"

namespace zs::compare {

/// From the mildest: `unknown` is within the bound as far as norms tell, and no values were kept.
enum class Apart { rounding, unknown, beyond };

struct Judged {
  Apart apart = Apart::rounding;
  std::string why{};  ///< "the norms are 0.2 and 0.6"
};

/// The values of one tensor of one side; empty where none were kept.
using Values = std::vector<Part>;

/// Sees the tensors that differ, step by step.
class Rounding {
 public:
  /// What another order of the same sums may come to, relative to the norm, for a type's digits: 256 units of the last
  /// place. That is the growth of an error over a sum of 2^16 terms of random signs.
  static double bound(const std::string& dtype);

  Judged loss(double a, double b) const;
  /// A gradient of any step.
  Judged gradient(const Probed& a, const Probed& b, const Values& values_a, const Values& values_b) const;
  /// A parameter after a step. An optimizer that divides a gradient by its own size moves an element by the learning
  /// rate also where its gradient is rounding alone: such elements, by the gradient's values of this step and those
  /// before, may be further apart. `gradient` is empty where no values of it were kept.
  Judged parameter(const std::string& name, const Probed& a, const Probed& b, const Values& values_a,
                   const Values& values_b, const Values& gradient);

 private:
  std::map<std::string, std::vector<bool>> noise_;  // by parameter: elements whose gradient was rounding alone
};

}  // namespace zs::compare
