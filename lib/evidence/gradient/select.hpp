// SPDX-License-Identifier: Apache-2.0
// What of a history is looked at: tensors in place of layers, some in place of all; and the same as text for programs.
#pragma once
#include <string>
#include <vector>

#include "gradient/history.hpp"

namespace zs::gradient {

/// Each tensor as a layer of its own, by its whole name.
History by_tensor(History history);

/// The layers of these names alone, in this order. Where one is no layer but a tensor, all are tensors. One that no
/// checkpoint has stands as 0, and is in `missing`.
History only(History history, const std::vector<std::string>& names);

/// A row for the whole, each layer and each tensor at each checkpoint, tab-separated below a header: place, checkpoint,
/// kind, name, values, norm, rms, mean, variance, largest, zeros, nans, infinities, cosine (with the checkpoint before;
/// empty where there is none), micro_batches, batch_variance and noise_scale (see Noise; empty where none were saved).
std::string to_tsv(const History& history);
/// The same as {"subject", "checkpoints": [{"place", "checkpoint", "path", "whole", "layers", "tensors"}], "missing"};
/// nan and inf are texts; micro_batches, batch_variance and noise_scale are there where they were saved.
std::string to_json(const History& history);

}  // namespace zs::gradient
