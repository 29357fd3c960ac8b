// SPDX-License-Identifier: Apache-2.0
// The gradients of a model over its checkpoints: measures of each tensor and each layer.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "gradient/measure.hpp"
#include "tensorfile/tensor.hpp"

namespace zs::gradient {

struct Checkpoint {
  Source source;
  std::vector<Measure> tensors;     ///< by tensor
  std::vector<double> tensor_dots;  ///< by tensor: the inner product with the previous checkpoint; empty for the first
  std::vector<Measure> layers;      ///< by layer
  std::vector<double> layer_dots;   ///< by layer, the same
  Measure whole;                    ///< of all tensors
  /// Micro-batches of the step whose norms were saved (gradient_norms.pt); 0: none.
  std::size_t micro_batches = 0;
  std::vector<double> tensor_squares;  ///< by tensor: sum over micro-batches of the squared norm; empty without norms
  std::vector<double> layer_squares;   ///< by layer, the same
};

/// The variation among micro-batches, from their number, the sum of their squared norms, and their mean gradient.
struct Noise {
  double variance;  ///< of an element over micro-batches (n - 1), averaged over the elements; nan below two
  /// The number of micro-batches whose mean gradient would be half noise (the simple noise scale of McCandlish and
  /// others, 2018): inf if the noise hides the gradient; nan as above.
  double scale;
};
Noise noise(std::size_t micro_batches, double squares, const Measure& mean);

struct History {
  std::string subject;
  std::vector<std::string> names;         ///< of the tensors, in the order of the first file
  std::vector<tensorfile::Shape> shapes;  ///< by tensor
  std::vector<Layer> layers;
  std::vector<Checkpoint> checkpoints;  ///< in the order of the sources
  std::vector<std::string> without;     ///< checkpoints that have no gradients
  std::vector<std::string> missing;     ///< requested from only() but in no checkpoint: treated as zeros
  bool by_step = false;                 ///< every checkpoint has a step, in ascending order

  /// A checkpoint's position on an axis: its step, else its number from 1.
  double place(std::size_t checkpoint) const;
  /// "step 100", else the checkpoint's folder.
  std::string when(std::size_t checkpoint) const;
  /// The cosine between a checkpoint's gradients and the previous checkpoint's; nan for the first, and if undefined.
  double layer_cosine(std::size_t checkpoint, std::size_t layer) const;
  double tensor_cosine(std::size_t checkpoint, std::size_t tensor) const;
  double cosine(std::size_t checkpoint) const;
  /// For a layer, a tensor, the whole.
  Noise layer_noise(std::size_t checkpoint, std::size_t layer) const;
  Noise tensor_noise(std::size_t checkpoint, std::size_t tensor) const;
  Noise noise(std::size_t checkpoint) const;
};

/// Reads every file once or twice, a piece at a time, in constant memory. Throws Error, located, if one is damaged
/// (checksums are compared), is not a file of tensors, or belongs to another model than the first. Calls `progress`
/// before each file with the number of files done.
History read(const Sources& sources, const std::function<void(std::size_t done)>& progress = {});

}  // namespace zs::gradient
