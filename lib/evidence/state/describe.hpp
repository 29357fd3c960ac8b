// SPDX-License-Identifier: Apache-2.0
// What zs-checkpoint says of one checkpoint.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/sheet.hpp"
#include "state/state.hpp"

namespace zs::state {

/// "framework", "step", "ranks", ...: what is known, in order.
std::vector<std::pair<std::string, std::string>> header(const State& state);

/// A row a kind of tensor (weight, master, a moment) and element type: kind, type, tensors, elements, bytes.
Sheet kinds(const State& state);

/// A row a rank: rank, files, bytes of the files, elements of masters and moments that they hold.
Sheet ranks(const State& state);

/// A row a tensor: name, kind, type, shape, parts, files; with `digests` the SHA-256 of its bytes in row-major order.
/// Throws Error where a digest is asked for of a tensor that is not whole.
Sheet tensors(const State& state, bool digests);

/// Each of a parameter's tensors: "weight", "master", "exp_avg", and the tensor.
std::vector<std::pair<std::string, const Whole*>> tensors_of(const Parameter& parameter);

/// What verify() looked at.
struct Checked {
  std::int64_t tensors = 0, elements = 0, checksums = 0, rounded = 0, paddings = 0;
};
/// Reads every element: shards join without holes, checksums hold, numbers are finite, second moments not negative,
/// 16-bit weights are the masters rounded, padding is zero. What is not so is added to the faults of the state.
Checked verify(State& state);

}  // namespace zs::state
