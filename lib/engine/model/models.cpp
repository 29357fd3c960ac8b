// SPDX-License-Identifier: Apache-2.0
#include "model/models.hpp"

asm(".pushsection .rodata\n.globl zs_models\n.hidden zs_models\nzs_models: .incbin \"lib/engine/model/models.json\"\n"
    ".byte 0\n.popsection");
extern "C" __attribute__((visibility("hidden"))) const char zs_models[];

namespace zs::model {

const char* const kModels = zs_models;

}  // namespace zs::model
