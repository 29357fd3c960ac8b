// SPDX-License-Identifier: Apache-2.0
// preprocessor_config.json, which says how images become a model's samples: read and written.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "image/transform.hpp"

namespace zs::setup {

inline constexpr const char* kPreprocessor = "preprocessor_config.json";

/// A number for each channel, from one or three; nothing if they are not so many, or one is no finite number or, with
/// `positive`, not above 0.
std::optional<std::array<double, 3>> of_channels(const std::vector<std::optional<double>>& given, bool positive);
inline constexpr const char* kOfChannels = ", expected one number or three, for red, green and blue";

/// What the file in a model's folder says; the usual transform if there is none. `size` is the side length of the
/// samples, and `chosen` whether the user chose it, whatever the file says. Throws zs::Error, with key and remedy, at
/// what zs does not do.
image::Transform read_preprocessor(const std::string& folder, std::int64_t size, bool chosen);

/// The text of the file with which transformers makes of an image what an evaluation takes.
std::string preprocessor_json(const image::Transform& transform);

}  // namespace zs::setup
