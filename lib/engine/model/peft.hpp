// SPDX-License-Identifier: Apache-2.0
// adapter_config.json, as peft's save_pretrained writes it beside adapter_model.safetensors.
#pragma once
#include <string>

#include "model/model.hpp"

namespace zs::model {

inline constexpr const char* kAdapterConfig = "adapter_config.json";

/// What the file in `folder` says. Throws zs::Error, located, at each key that changes what is computed and that zs
/// does not know: another kind of adapter, dropout, biases, ranks by pattern.
Adaptation read_peft(const std::string& folder);

/// The file's text for the adapters of a model. REQUIRES: it has some.
std::string peft_json(const Model& model, const Adaptation& adaptation);

}  // namespace zs::model
