// SPDX-License-Identifier: Apache-2.0
#include "model/models.hpp"

#include "base/embedded.hpp"

namespace zs::model {

ZS_EMBEDDED(kModels, "lib/engine/model/models.json");

}  // namespace zs::model
