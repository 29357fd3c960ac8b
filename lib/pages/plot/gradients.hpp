// SPDX-License-Identifier: Apache-2.0
// Figures of gradients over the layers and checkpoints of a run.
#pragma once
#include <string>
#include <vector>

#include "gradient/finding.hpp"
#include "plot/figures.hpp"

namespace zs::plot {

/// Bars: the norm of each layer at the last checkpoint, with the range over all. Lines: the norms over the checkpoints,
/// on a logarithmic axis; of many layers only some, including those with findings. Throws Error without a checkpoint.
Figure gradient_figure(const gradient::History& history);

/// Lines: the cosine between each checkpoint's gradient and the one before, by layer. REQUIRES: two checkpoints or
/// more.
Figure cosine_figure(const gradient::History& history);

/// The word for the layers of a history: "layer", or "tensor" if each is one (gradient/select.hpp).
std::string noun(const gradient::History& history);

/// The layers that are drawn as curves: all if few, else at most as many as the palette has colours.
std::vector<std::size_t> shown_layers(const gradient::History& history);

}  // namespace zs::plot
