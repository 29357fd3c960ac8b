// SPDX-License-Identifier: Apache-2.0
// One decoder a format, for the sources of this folder alone.
#pragma once
#include "image/image.hpp"

namespace zs::image {

Image decode_jpeg(std::string_view bytes, const std::string& path);
Image decode_png(std::string_view bytes, const std::string& path);

/// Throws zs::Error where there are more pixels than kMostPixels, or none.
void check_size(std::int64_t width, std::int64_t height, const std::string& path);

}  // namespace zs::image
