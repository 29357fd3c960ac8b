// SPDX-License-Identifier: Apache-2.0
// Operations::to_e4m3 and from_e4m3 on a GPU.
#pragma once
#include "device/operations.hpp"

namespace zs::device::cuda {

void to_e4m3_on_gpu(const View& numbers, const View& most, const View& codes);
void from_e4m3_on_gpu(const View& codes, const View& most, const View& numbers);

}  // namespace zs::device::cuda
