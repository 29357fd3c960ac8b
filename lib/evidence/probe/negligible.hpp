// SPDX-License-Identifier: Apache-2.0
// Gradients that are only rounding: attention does not depend on the bias of its keys, so its gradient is 0 except for
// rounding. Adam turns it into an update, which means nothing.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "probe/diagnosis.hpp"

namespace zs::probe {

/// The gradients that a comparison of two trainings leaves out for that reason.
class Negligible {
 public:
  using Ranges = std::vector<bool>;  ///< of a tensor; empty: none

  /// Examines a step: which ranges of which gradients are only rounding on both sides, and differ. `unit` is the
  /// rounding of a parameter's gradient, relative to its norm.
  template <class Rounding>
  void step(const Side& a, const Side& b, const Rounding& unit) {
    now_.clear();
    for (const auto& [name, tensor] : a.step.tensors.all()) {
      if (!name.starts_with("grad/")) continue;
      const std::string parameter = name.substr(5);
      if (const Ranges ranges = of(parameter, a, b, unit(parameter)); !ranges.empty()) add(parameter, ranges);
    }
  }

  /// Removes from both sketches what is left out at this place;
  /// returns whether anything remains. Counts the ranges.
  bool judged(const std::string& place, const std::string& parameter, Sketch& a, Sketch& b);
  /// The same for parameters, without counting.
  void leave_out(const std::string& parameter, Sketch& a, Sketch& b) const;

  /// "of gradients 2 of 16 ranges ..., of updates ...": what was left out over all steps; "" if nothing was.
  std::string text() const;

 private:
  static Ranges of(const std::string& parameter, const Side& a, const Side& b, double unit);
  void add(const std::string& parameter, const Ranges& ranges);

  std::map<std::string, Ranges> now_;   // of this step's gradients
  std::map<std::string, Ranges> ever_;  // of all steps, with the adjacent ranges, which share elements with them
  struct Count {
    std::int64_t ranges = 0, known = 0;
    std::set<std::string> parameters;
  };
  std::map<std::string, Count> counts_;  // by place
};

}  // namespace zs::probe
