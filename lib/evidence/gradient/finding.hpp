// SPDX-License-Identifier: Apache-2.0
// Which layers' gradients vanish, explode, are zero or not finite, by rules with fixed thresholds.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gradient/history.hpp"

namespace zs::gradient {

inline constexpr double kAcross = 1000;       ///< a layer's RMS beside the median of all layers, at one checkpoint
inline constexpr double kGrowth = 100;        ///< a layer's norm beside its median over the checkpoints before
inline constexpr std::size_t kFewLayers = 3;  ///< of fewer the median says nothing

enum class Trouble {
  not_finite,  ///< an element is nan or inf
  zero,        ///< every element is 0
  vanishing,   ///< RMS below the median of all layers over kAcross
  exploding,   ///< RMS above the median of all layers times kAcross
  growing      ///< norm above kGrowth times the median of the checkpoints before
};
/// "vanishing": as a table says it. Growing is exploding too.
std::string name(Trouble trouble);

struct Finding {
  Trouble trouble;
  std::size_t layer, checkpoint;
  double ratio = 0;  ///< the value over the median it was compared with; nan where there is none
};

/// All that is wrong, by checkpoint, then by layer.
std::vector<Finding> findings(const History& history);

/// The same, what is furthest from sound first: not finite, zero, then by the ratio.
std::vector<Finding> worst_first(std::vector<Finding> findings);

/// The first that is wrong with a layer at a checkpoint, if anything is.
std::optional<Finding> at(const std::vector<Finding>& findings, std::size_t checkpoint, std::size_t layer);

/// The median RMS of the layers of a checkpoint whose gradient is finite and not zero; nan with fewer than kFewLayers.
double median_rms(const Checkpoint& checkpoint);

/// By what factor the RMS changes from each block to the one before it, at a checkpoint: the geometric mean over the
/// row of blocks. nan with fewer than two blocks, or where one is zero or not finite.
double depth_factor(const History& history, std::size_t checkpoint);

}  // namespace zs::gradient
