// SPDX-License-Identifier: Apache-2.0
// Adapters of a checkpoint, merged into the products that they are beside: W + scale B A.
#pragma once
#include <string>

#include "tensorfile/safetensors.hpp"
#include "tensorfile/state_dict.hpp"

namespace zs::pretrained {

/// The tensors of `weights`, whose file outlives them, without adapters: those of `configuration`, an
/// adapter_config.json, are added to what they adapt, in float64, rounded once to float32. Throws zs::Error, located,
/// where an adapter has nothing to be added to or the file does not say how.
tensorfile::NamedTensors merged(const tensorfile::StateDict& weights, const std::string& configuration);

}  // namespace zs::pretrained
