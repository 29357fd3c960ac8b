// SPDX-License-Identifier: Apache-2.0
// Gradients of checkpoints, and statistics of their elements by layer, in constant memory. Sums are float64;
// nan and inf are counted separately.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "input/named.hpp"

namespace zs::gradient {

struct Measure {
  std::int64_t count = 0;                 ///< elements
  std::int64_t zeros = 0;                 ///< of which exactly 0
  std::int64_t nans = 0, infinities = 0;  ///< of which these
  double mean = 0;                        ///< of the finite ones
  double deviations = 0;                  ///< sum of their squared differences from the mean
  double squares = 0;                     ///< sum of their squares
  double largest = 0;                     ///< the largest magnitude of these

  void add(std::span<const float> values);
  void add(const Measure& other);

  std::int64_t non_finite() const { return nans + infinities; }
  std::int64_t finite() const { return count - non_finite(); }
  bool all_zero() const { return count > 0 && zeros == count; }
  /// L2 norm: nan or inf if an element is, since these are values and not gaps.
  double norm() const;
  /// Root mean square: the norm over the root of the number of elements, comparable between layers of different sizes.
  /// nan without elements.
  double rms() const;
  /// Variance of the finite elements (divided by their number). nan without any.
  double variance() const;
};

/// The inner product of two spans of the same length, in float64; nan or inf if an element is.
double dot(std::span<const float> a, std::span<const float> b);

/// Cosine of the angle between two gradients, from their inner product: within [-1, 1]; nan if a norm is 0 or not
/// finite.
double cosine(double dot, double norm_a, double norm_b);

// The layers of a model, derived from the names of its tensors: a block, an embedding, a head.

struct Layer {
  std::string name;                  ///< "h.0", "wte", "encoder.layer.3"
  bool block = false;                ///< one of several equal ones: its name ends in a number
  std::vector<std::size_t> tensors;  ///< indices among the names
};

/// Tensors belong to one layer if their names are equal up to the first part that is a number ("h.0" of
/// "transformer.h.0.attn.c_proj.weight"), or without a number in their first part ("wte" of "transformer.wte.weight").
/// A first part that all blocks share is removed. In order of first appearance.
std::vector<Layer> layers(const std::vector<std::string>& names);

// Finds gradients: the gradients.pt of a run's checkpoints, of single checkpoints, or named directly.

struct Source {
  std::string path;                  ///< of the file
  std::string checkpoint;            ///< "checkpoint_100", its folder's name
  std::optional<std::int64_t> step;  ///< steps done; nothing if neither state.json nor the folder's name has it
};

struct Sources {
  std::vector<Source> found;         ///< in the order of the operands; a run's checkpoints by step
  std::vector<std::string> without;  ///< paths of a run's checkpoints without gradients
  std::string subject;               ///< the run's name, or the first checkpoint's path
};

/// The gradients of runs, of checkpoints, and files of them. Throws Error, located, with the reason, if there are none.
/// REQUIRES: kinds of gradients.
Sources find(const std::vector<input::Named>& named);

}  // namespace zs::gradient
