// SPDX-License-Identifier: Apache-2.0
// What a training says about itself before its first step, beside what the trainer finds out.
#pragma once
#include "attribute/difference.hpp"
#include "config/config.hpp"
#include "device/memory.hpp"
#include "setup/settings.hpp"

namespace zs::setup {

/// Every known key of the configuration that has a value, defaults too, under its name in metric files.
attribute::Facts configured(const config::Config& config);

/// What multiplies matrices, as far as the configuration leaves it open: on a GPU the hash of a table or "first"; on a
/// processor the instructions for bfloat16, "float32" where there are none and numbers of 16 bits are widened, and ""
/// where nothing has 16 bits.
std::string products(const device::Device& device, const Settings& settings);

/// What the settings say of how numbers are rounded: every attribute of the table that is arithmetic, has a key and is
/// not found out; those of the loss scale where there is one.
attribute::Facts chosen_arithmetic(const Settings& settings);

/// What the bits of this process depend on beside the configuration: device, instruction set, versions of LibTorch and
/// BLAS, products, threads, processor.
attribute::Facts arithmetic(const device::Device& device, const Settings& settings);

}  // namespace zs::setup
