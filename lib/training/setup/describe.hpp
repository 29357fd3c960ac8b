// SPDX-License-Identifier: Apache-2.0
// The description of a training before its first step, except what the trainer determines.
#pragma once
#include "attribute/difference.hpp"
#include "config/config.hpp"
#include "device/memory.hpp"
#include "setup/settings.hpp"

namespace zs::setup {

/// Every known key of the configuration with a value, including defaults, under its name in metric files.
attribute::Facts configured(const config::Config& config);

/// The implementation of matrix products, if the configuration leaves it open: on a GPU the hash of a table or "first";
/// on a processor the instructions for bfloat16, "float32" if it has none and 16-bit numbers are widened, and "" if
/// nothing has 16 bits.
std::string products(const device::Device& device, const Settings& settings);

/// The settings that affect rounding: every attribute of the table that is arithmetic, has a key and is not found by
/// the run; also the loss scaler's settings if there is one.
attribute::Facts chosen_arithmetic(const Settings& settings);

/// Facts besides the configuration that the bits of this process depend on: device, instruction set, versions of
/// LibTorch and BLAS, products, threads, processor.
attribute::Facts arithmetic(const device::Device& device, const Settings& settings);

/// "float32", "bfloat16" or "float16".
std::string dtype_name(at::ScalarType dtype);

/// The same for autocast; "none" if it is off.
std::string autocast_name(const Settings& settings);

/// "none", "tensorwise" or "rowwise".
std::string float8_name(kernel::Scales scales);
/// How frozen matrices are held in 4 bits: "none", "single", "double".
std::string nf4_name(const Settings& settings);

/// The number format of matrix products: the name of the type, "tf32", or "float8".
std::string matrix_format(const Settings& settings);

}  // namespace zs::setup
