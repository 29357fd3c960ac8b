// SPDX-License-Identifier: Apache-2.0
// The description of one checkpoint, for zs-checkpoint.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/sheet.hpp"
#include "checkpoints/state.hpp"

namespace zs::state {

using checkpoints::Parameter;
using checkpoints::Piece;
using checkpoints::State;
using checkpoints::Whole;

/// "framework", "step", "ranks", ...: the known facts, in order.
std::vector<std::pair<std::string, std::string>> header(const State& state);

/// A row per kind of tensor (weight, master, a moment) and element type: kind, type, tensors, elements, bytes.
Sheet kinds(const State& state);

/// A row per rank: rank, files, bytes of the files, elements of masters and moments in them.
Sheet ranks(const State& state);

/// A row per tensor: name, kind, type, shape, parts, files; with `digests` the SHA-256 of its bytes in row-major order.
/// Throws Error if a digest is requested for an incomplete tensor.
Sheet tensors(const State& state, bool digests);

/// The tensors of a parameter: "weight", "master", "exp_avg", and the tensor.
std::vector<std::pair<std::string, const Whole*>> tensors_of(const Parameter& parameter);

/// The counts of verify().
struct Checked {
  std::int64_t tensors = 0, elements = 0, checksums = 0, rounded = 0, paddings = 0;
  std::vector<std::string> not_checked{};  ///< what the checkpoint does not say enough for
};
/// Reads every element and checks: shards join without gaps, checksums match, numbers are finite, second moments are
/// not negative, 16-bit weights are the rounded masters, padding is zero. Adds violations to the faults of the state.
Checked verify(State& state);

}  // namespace zs::state
