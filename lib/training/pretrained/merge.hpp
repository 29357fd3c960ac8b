// SPDX-License-Identifier: Apache-2.0
// Merges a checkpoint's adapters into the products: W + scale B A.
#pragma once
#include <string>

#include "tensorfile/safetensors.hpp"
#include "tensorfile/state_dict.hpp"

namespace zs::pretrained {

/// The tensors of `weights`, whose file must outlive them, with their adapters merged: adds the adapters of
/// `configuration`, an adapter_config.json, to their products, in float64, rounded once to float32. Throws zs::Error,
/// located, if an adapter has no product or the file has no scale.
tensorfile::NamedTensors merged(const tensorfile::StateDict& weights, const std::string& configuration);

}  // namespace zs::pretrained
