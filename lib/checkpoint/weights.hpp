// SPDX-License-Identifier: Apache-2.0
// The parameters of a checkpoint, or of a folder that Python made, brought into an engine.
#pragma once
#include <string>

#include "device/tensor.hpp"
#include "zero/engine.hpp"

namespace zs::checkpoint {

/// Compares the folder's config.json, if it has one, with `model_config`: every key that decides what is computed and
/// that both have must be the same. Throws zs::Error, naming the key, where one is not.
void require_same_model(const std::string& folder, const std::string& model_config);

/// Sets the engine's parameters from the weights in `folder`. Names may lack their first part ("h.0." for
/// "transformer.h.0."), as on Hugging Face's hub; attention masks and a head equal to the embedding that it is tied to
/// may be there too. Anything else that is missing, is more, or has another shape is of another model: zs::Error. With
/// `verify`, checksums in the file are compared. What was set is added to `hash`.
void load_parameters(zero::Engine& engine, const std::string& folder, bool verify, device::Hash& hash);

}  // namespace zs::checkpoint
