// SPDX-License-Identifier: Apache-2.0
// How the gradients of different layers lie to one another.
#pragma once
#include <cstddef>
#include <vector>

#include "gradient/history.hpp"

namespace zs::gradient {

/// Layers of one shape, and the cosines between their gradients.
struct Between {
  std::vector<std::size_t> layers;  ///< of the history
  std::vector<double> cosines;      ///< row by row; nan where one is zero or not finite
  std::size_t left_out = 0;         ///< layers of that shape beyond those shown
  double cosine(std::size_t row, std::size_t column) const { return cosines[row * layers.size() + column]; }
};

/// The layers whose tensors have the shapes that most layers have, `most` of them evenly, the first and the last among
/// them, at a checkpoint. No layers where there are no two of one shape. Reads the file once, a piece at a time. Throws
/// Error as read().
Between between(const History& history, std::size_t checkpoint, std::size_t most);

}  // namespace zs::gradient
