// SPDX-License-Identifier: Apache-2.0
// adapter_config.json, in the format of peft's save_pretrained.
#pragma once
#include <string>

#include "model/model.hpp"

namespace zs::model {

inline constexpr const char* kAdapterConfig = "adapter_config.json";

/// Reads the file in `folder`. Throws zs::Error, located, at each key that affects the computation and that zs does not
/// support: another kind of adapter, dropout, biases, ranks by pattern.
Adaptation read_peft(const std::string& folder);

/// Throws zs::Error if the file of a checkpoint's folder, where it is there, gives adapters another factor.
void require_same_factor(const Adaptation& adaptation, const std::string& folder);

/// The file's text for the adapters of a model. REQUIRES: it has some.
std::string peft_json(const Model& model, const Adaptation& adaptation);

}  // namespace zs::model
