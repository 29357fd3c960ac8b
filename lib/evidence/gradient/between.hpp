// SPDX-License-Identifier: Apache-2.0
// The angles between gradients of different layers.
#pragma once
#include <cstddef>
#include <vector>

#include "gradient/history.hpp"

namespace zs::gradient {

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
