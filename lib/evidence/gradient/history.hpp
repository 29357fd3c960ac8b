// SPDX-License-Identifier: Apache-2.0
// The gradients of one model over its checkpoints, as measures of each tensor and each layer.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gradient/layer.hpp"
#include "gradient/measure.hpp"
#include "gradient/source.hpp"
#include "tensorfile/tensor.hpp"

namespace zs::gradient {

struct Checkpoint {
  Source source;
  std::vector<Measure> tensors;     ///< by tensor
  std::vector<double> tensor_dots;  ///< by tensor: the inner product with the checkpoint before; empty for the first
  std::vector<Measure> layers;      ///< by layer
  std::vector<double> layer_dots;   ///< by layer, likewise
  Measure whole;                    ///< of all tensors
  /// Micro-batches of the step whose norms were saved (gradient_norms.pt); 0: none were.
  std::size_t micro_batches = 0;
  std::vector<double> tensor_squares;  ///< by tensor: sum over micro-batches of the squared norm; empty of none
  std::vector<double> layer_squares;   ///< by layer, likewise
};

/// How far micro-batches differ, from their number, the sum of their squared norms, and their mean gradient.
struct Noise {
  double variance;  ///< of an element over micro-batches (n - 1), the mean over the elements; nan of fewer than two
  /// Micro-batches whose mean gradient would be as much noise as gradient (the simple noise scale of McCandlish and
  /// others, 2018): inf where the gradient does not stand out of the noise; nan as above.
  double scale;
};
Noise noise(std::size_t micro_batches, double squares, const Measure& mean);

struct History {
  std::string subject;
  std::vector<std::string> names;         ///< of the tensors, in the first file's order
  std::vector<tensorfile::Shape> shapes;  ///< by tensor
  std::vector<Layer> layers;
  std::vector<Checkpoint> checkpoints;  ///< in the sources' order
  std::vector<std::string> without;     ///< checkpoints that have no gradients
  std::vector<std::string> missing;     ///< asked for by only(), and in no checkpoint: they stand as zeros
  bool by_step = false;                 ///< every checkpoint has a step, and they ascend

  /// Where a checkpoint stands on an axis: its step, else its number from 1.
  double place(std::size_t checkpoint) const;
  /// "step 100", else the checkpoint's folder.
  std::string when(std::size_t checkpoint) const;
  /// The cosine between the gradients of a checkpoint and of the one before; nan for the first, and where there is
  /// none.
  double layer_cosine(std::size_t checkpoint, std::size_t layer) const;
  double tensor_cosine(std::size_t checkpoint, std::size_t tensor) const;
  double cosine(std::size_t checkpoint) const;
  /// Of a layer, a tensor, the whole.
  Noise layer_noise(std::size_t checkpoint, std::size_t layer) const;
  Noise tensor_noise(std::size_t checkpoint, std::size_t tensor) const;
  Noise noise(std::size_t checkpoint) const;
};

/// Reads every file once or twice, a piece at a time: memory does not grow with them. Throws Error, located, where one
/// is damaged (checksums are compared), is no file of tensors, or is of another model than the first.
/// `progress` is told before each file how many are done.
History read(const Sources& sources, const std::function<void(std::size_t done)>& progress = {});

}  // namespace zs::gradient
