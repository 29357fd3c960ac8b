// SPDX-License-Identifier: Apache-2.0
// The models with known names: models.json, as bytes of the program.
#pragma once

namespace zs::model {

/// A list of objects: family (config.json's model_type), name, owner, and config, the keys of config.json that differ
/// from the defaults of the family.
extern const char* const kModels;

}  // namespace zs::model
