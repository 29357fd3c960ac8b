// SPDX-License-Identifier: Apache-2.0
// Causes of a factor. A cause moves a family of parameters: one stage, one reduction, one kind of cut. It is named only
// if the factor holds for the whole family. Causes that make the same factor are named together.
#pragma once
#include <string>
#include <vector>

#include "probe/diagnosis.hpp"

namespace zs::probe {

/// The ranks along an axis, by either of its names; 1 if there is none.
std::int64_t size_of(const Run& run, const char* axis, const char* other = "");

/// The family of the parameter that ranks recorded at PLACE/PARAMETER.
std::string family(const Run& run, const Step& step, const std::string& place, const std::string& parameter);

/// Constants, each value once: a second name of a value follows the first. Values up to 1 explain nothing.
class Causes {
 public:
  void add(const std::string& name, double value);
  /// The sizes of a side's groups of ranks; if gradients are not reduced yet, of those that share a micro-batch.
  void ranks(const Run& run, const Step& step, bool reduced = true);
  /// The number of its micro-batches.
  void micro_batches(const Run& run, const Step& step);
  void scale(const Step& step);
  /// The factor of gradients of one loss scale that are divided by the next, which this step's update leaves.
  void next_scale(const Step& step);
  /// The norm over the bound of clipping. Returns it; 1 where nothing is clipped.
  double clipping(const Step& step);
  const Constants& all() const { return known_; }

 private:
  Constants known_;
};

/// The causes that may explain the factor of B's gradients of these parameters. There are none if a parameter of their
/// family does not have it, and no groups of ranks if the micro-batches' own gradients have it, before any reduction.
Constants causes_of(const std::vector<std::string>& parameters, double factor, const std::string& place, const Side& a,
                    const Side& b);

}  // namespace zs::probe
