// SPDX-License-Identifier: Apache-2.0
// What a training says about itself before its first step, beside what the trainer finds out.
#pragma once
#include "attribute/difference.hpp"
#include "config/config.hpp"
#include "device/memory.hpp"

namespace zs::train {

/// Every known key of the configuration that has a value, defaults too, under its name in metric files.
attribute::Facts configured(const config::Config& config);

/// What the bits of this process depend on beside the configuration: device, instruction set, versions of LibTorch and
/// BLAS, threads, processor.
attribute::Facts arithmetic(const device::Device& device);

}  // namespace zs::train
