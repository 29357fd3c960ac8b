// SPDX-License-Identifier: Apache-2.0
#include "image/image.hpp"

#include <array>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/words.hpp"

namespace zs::image {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kJpeg = "\xff\xd8\xff"sv, kPng = "\x89PNG\r\n\x1a\n"sv, kJpegEnd = "\xff\xd9"sv;

/// Formats that files of other names often are.
struct Other {
  std::string_view begin, name;
};
constexpr std::array kOthers = {Other{"GIF8"sv, "a GIF"},
                                Other{"RIFF"sv, "a WebP"},
                                Other{"BM"sv, "a BMP"},
                                Other{"II*\0"sv, "a TIFF"},
                                Other{"MM\0*"sv, "a TIFF"},
                                Other{"<"sv, "a page of the web"},
                                Other{"\0\0\0"sv, "an AVIF or HEIC"}};

[[noreturn]] void refuse(std::string_view bytes, const std::string& path) {
  if (bytes.empty()) throw Error(path, 0, "is empty");
  for (const Other& other : kOthers) {
    if (bytes.starts_with(other.begin))
      throw Error(path, 0, "is " + std::string(other.name) + " file: zs reads JPEG and PNG");
  }
  throw Error(path, 0, "is neither a JPEG nor a PNG file");
}

/// Walks over the chunks of a PNG file.
bool has_end(std::string_view png) {
  std::size_t at = kPng.size();
  while (png.size() - at >= 12) {
    std::uint64_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<std::uint8_t>(png[at + i]);
    if (png.substr(at + 4, 4) == "IEND") return true;
    if (size > png.size() - at - 12) return false;
    at += size + 12;
  }
  return false;
}

}  // namespace

void check_size(std::int64_t width, std::int64_t height, const std::string& path) {
  if (width < 1 || height < 1 || width > kMostPixels / height)
    throw Error(path, 0,
                "is " + to_text(width) + " x " + to_text(height) + " pixels, expected 1 to " + to_text(kMostPixels) +
                    " in all");
}

Image decode(std::string_view bytes, const std::string& path) {
  if (bytes.starts_with(kJpeg)) return decode_jpeg(bytes, path);
  if (bytes.starts_with(kPng)) return decode_png(bytes, path);
  refuse(bytes, path);
}

void check(std::string_view bytes, const std::string& path) {
  const bool jpeg = bytes.starts_with(kJpeg);
  if (!jpeg && !bytes.starts_with(kPng)) refuse(bytes, path);
  if (jpeg ? bytes.rfind(kJpegEnd) == std::string_view::npos : !has_end(bytes)) throw Error(path, 0, "is cut short");
}

bool names_image(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return false;
  const std::string ending = lower(path.substr(dot));
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

}  // namespace zs::image
