// SPDX-License-Identifier: Apache-2.0
// The decoders, one per format. Only for sources of this folder.
#pragma once
#include "image/image.hpp"

namespace zs::image {

Image decode_jpeg(std::string_view bytes, const std::string& path);
Image decode_png(std::string_view bytes, const std::string& path);

/// Throws zs::Error if there are more pixels than kMostPixels, or none.
void check_size(std::int64_t width, std::int64_t height, const std::string& path);

}  // namespace zs::image
