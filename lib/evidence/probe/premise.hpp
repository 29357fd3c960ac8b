// SPDX-License-Identifier: Apache-2.0
// The inputs of a step: samples, target tokens, the optimizer's options and parameters, the copies used by forward.
// Each function reports where B's differ from A's: a Finding without tensors, or nothing.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "probe/diagnosis.hpp"

namespace zs::probe {

/// Compares samples by their digests, regardless of the rank. No finding if the two recordings have no sample in
/// common: their types may differ.
class Samples {
 public:
  Samples(const Run& a, const Run& b);
  /// Looks at B's steps after that one.
  void grow(std::int64_t after);
  std::optional<Finding> apart(std::int64_t step) const;

 private:
  const Run &a_, &b_;
  std::set<std::string> all_;  // of A
  bool comparable_ = false;
};

/// Compares the number of target tokens that the loss counts. No finding if a side has not recorded it, or only one
/// side has recorded samples: then two programs have counted.
std::optional<Finding> targets_apart(std::int64_t step, const Side& a, const Side& b);

/// Finds a parameter that only one side has as tied, frozen or in no group.
std::optional<Finding> parameters_apart(std::int64_t step, const Side& a, const Side& b);

/// Finds parameters that changed between the last update and forward on one side only, or differently on both.
std::optional<Finding> found_apart(std::int64_t step, const Side& a, const Side& b);

/// Finds a copy, used by forward of the next step, that is not the result of B's update.
std::optional<Finding> copies_apart(std::int64_t step, const Side& b, const char* who);

}  // namespace zs::probe
