// SPDX-License-Identifier: Apache-2.0
#include "model/models.hpp"

#include "base/embedded.hpp"

ZS_EMBEDDED(zs_models, "lib/engine/model/models.json");

namespace zs::model {

const char* const kModels = zs_models;

}  // namespace zs::model
