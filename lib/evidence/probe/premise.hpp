// SPDX-License-Identifier: Apache-2.0
// What a step begins with: samples, the optimizer's options and parameters, the copies that forward computes with. Each
// function says where B's is another than A's: a Finding without tensors, or nothing.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "probe/diagnosis.hpp"

namespace zs::probe {

/// Samples, by their digests, whoever held them. Nothing where the two recordings have no sample in common: they may be
/// of another type.
class Samples {
 public:
  Samples(const Run& a, const Run& b);
  std::optional<Finding> apart(std::int64_t step) const;

 private:
  const Run &a_, &b_;
  bool comparable_ = false;
};

/// Rate, weight decay and all other options of each group. The relation is the whole sentence.
std::optional<Finding> options_apart(std::int64_t step, const Side& a, const Side& b);

/// A parameter that is tied, frozen or in no group on one side alone.
std::optional<Finding> parameters_apart(std::int64_t step, const Side& a, const Side& b);

/// Parameters that forward found changed since the last update, on one side alone or otherwise on both.
std::optional<Finding> found_apart(std::int64_t step, const Side& a, const Side& b);

/// A copy, which forward of the next step computes with, that is not what B's own update made.
std::optional<Finding> copies_apart(std::int64_t step, const Side& b, const char* who);

}  // namespace zs::probe
