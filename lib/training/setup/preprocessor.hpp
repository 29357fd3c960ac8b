// SPDX-License-Identifier: Apache-2.0
// preprocessor_config.json, which says how images become a model's samples: read and written.
#pragma once
#include <string>

#include "image/transform.hpp"

namespace zs::setup {

inline constexpr const char* kPreprocessor = "preprocessor_config.json";

/// What the file in a model's folder says; the usual transform if there is none. `size` is the side length of the
/// samples, and `chosen` whether the user chose it, whatever the file says. Throws zs::Error, with key and remedy, at
/// what zs does not do.
image::Transform read_preprocessor(const std::string& folder, std::int64_t size, bool chosen);

/// The text of the file with which transformers makes of an image what an evaluation takes.
std::string preprocessor_json(const image::Transform& transform);

}  // namespace zs::setup
