// SPDX-License-Identifier: Apache-2.0
// Finds layers whose gradients vanish, explode, are zero or not finite, by fixed thresholds.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gradient/history.hpp"

namespace zs::gradient {

inline constexpr double kAcross = 1000;       ///< a layer's RMS over the median of all layers, at one checkpoint
inline constexpr double kGrowth = 100;        ///< a layer's norm over its median at the checkpoints before
inline constexpr std::size_t kFewLayers = 3;  ///< with fewer layers the median means nothing

enum class Trouble {
  not_finite,  ///< an element is nan or inf
  zero,        ///< every element is 0
  vanishing,   ///< RMS below the median of all layers divided by kAcross
  exploding,   ///< RMS above the median of all layers times kAcross
  growing      ///< norm above kGrowth times the median of the checkpoints before
};
/// "vanishing": the word in tables. Growing counts as exploding.
std::string name(Trouble trouble);

struct Finding {
  Trouble trouble;
  std::size_t layer, checkpoint;
  double ratio = 0;  ///< the value over the median; nan if there is none
};

/// All findings, by checkpoint, then by layer.
std::vector<Finding> findings(const History& history);

/// The same, worst first: not finite, zero, then by the ratio.
std::vector<Finding> worst_first(std::vector<Finding> findings);

/// The first finding of a layer at a checkpoint, if any.
std::optional<Finding> at(const std::vector<Finding>& findings, std::size_t checkpoint, std::size_t layer);

/// The median RMS of a checkpoint's layers with finite nonzero gradients; nan with fewer than kFewLayers.
double median_rms(const Checkpoint& checkpoint);

/// The factor by which the RMS changes from each block to the one before it, at a checkpoint: the geometric mean over
/// all blocks. nan with fewer than two blocks, or if one is zero or not finite.
double depth_factor(const History& history, std::size_t checkpoint);

// The angles between gradients of different layers.

/// Layers with equal shapes, and the cosines between their gradients.
struct Between {
  std::vector<std::size_t> layers;  ///< indices in the history
  std::vector<double> cosines;      ///< row by row; nan if a gradient is zero or not finite
  std::size_t left_out = 0;         ///< further layers of these shapes
  double cosine(std::size_t row, std::size_t column) const { return cosines[row * layers.size() + column]; }
};

/// Selects the layers with the most common shapes, at most `most` of them at even distances, with the first and the
/// last, and compares their gradients at a checkpoint. Empty if no two layers have equal shapes. Reads the file once, a
/// piece at a time. Throws Error as read().
Between between(const History& history, std::size_t checkpoint, std::size_t most);

}  // namespace zs::gradient
