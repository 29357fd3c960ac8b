// SPDX-License-Identifier: Apache-2.0
// Selects parts of a history (tensors instead of layers, or some of all), and prints it as text for programs.
#pragma once
#include <string>
#include <vector>

#include "gradient/history.hpp"

namespace zs::gradient {

/// Treats each tensor as a layer, with its whole name.
History by_tensor(History history);

/// Keeps only the layers of these names, in this order. If one of them is a tensor instead of a layer, all are tensors.
/// A name that no checkpoint has is treated as 0, and listed in `missing`.
History only(History history, const std::vector<std::string>& names);

/// A row for the whole, each layer and each tensor at each checkpoint, tab-separated below a header: place, checkpoint,
/// kind, name, values, norm, rms, mean, variance, largest, zeros, nans, infinities, cosine (with the previous
/// checkpoint; empty for the first), micro_batches, batch_variance and noise_scale (see Noise; else empty).
std::string to_tsv(const History& history);
/// The same as {"subject", "checkpoints": [{"place", "checkpoint", "path", "whole", "layers", "tensors"}], "missing"};
/// nan and inf are texts; micro_batches, batch_variance and noise_scale are present if they were saved.
std::string to_json(const History& history);

}  // namespace zs::gradient
