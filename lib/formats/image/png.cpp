// SPDX-License-Identifier: Apache-2.0
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "base/error.hpp"
#include "image/image.hpp"

namespace zs::image {
namespace {

struct Reading {
  std::string_view bytes;
  std::size_t at = 0;
  char message[200] = "";
};

void take(png_structp png, png_bytep out, std::size_t size) {
  auto* const reading = static_cast<Reading*>(png_get_io_ptr(png));
  if (size > reading->bytes.size() - reading->at) png_error(png, "it is cut short");
  std::memcpy(out, reading->bytes.data() + reading->at, size);
  reading->at += size;
}

void leave(png_structp png, png_const_charp message) {
  auto* const reading = static_cast<Reading*>(png_get_error_ptr(png));
  std::strncpy(reading->message, message, sizeof reading->message - 1);
  png_longjmp(png, 1);
}

void ignore(png_structp, png_const_charp) {}

/// Fills `image`; false, with a message, on failure. Nothing here has a destructor: longjmp leaves it.
bool read(png_structp png, png_infop info, Image& image, std::vector<png_bytep>& rows, const std::string& path) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_read_info(png, info);
  image.width = png_get_image_width(png, info);
  image.height = png_get_image_height(png, info);
  check_size(image.width, image.height, path);
  png_colorp palette = nullptr;
  int colours = 0;
  const bool indexed =
      png_get_PLTE(png, info, &palette, &colours) != 0 && png_get_color_type(png, info) == PNG_COLOR_TYPE_PALETTE;
  png_set_strip_16(png);
  // libpng silently invents a colour for an index beyond the palette: so indices are looked up here.
  if (indexed) {
    png_set_packing(png);
  } else {
    png_set_expand(png);
    png_set_strip_alpha(png);
    png_set_gray_to_rgb(png);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  const std::int64_t bytes = indexed ? 1 : 3;  // per input pixel
  if (png_get_rowbytes(png, info) != static_cast<std::size_t>(image.width * bytes))
    png_error(png, "its rows are not RGB");
  image.rgb.resize(static_cast<std::size_t>(image.width * image.height * 3));
  rows.resize(static_cast<std::size_t>(image.height));
  for (std::int64_t y = 0; y < image.height; ++y)
    rows[static_cast<std::size_t>(y)] = image.rgb.data() + y * image.width * bytes;
  png_read_image(png, rows.data());
  png_read_end(png, nullptr);
  for (std::int64_t i = indexed ? image.width * image.height : 0; i-- > 0;) {  // from the end: a pixel becomes wider
    const int index = image.rgb[static_cast<std::size_t>(i)];
    if (index >= colours) png_error(png, "a pixel's colour is beyond the palette");
    const png_color& colour = palette[index];
    const std::size_t at = static_cast<std::size_t>(i) * 3;
    image.rgb[at] = colour.red, image.rgb[at + 1] = colour.green, image.rgb[at + 2] = colour.blue;
  }
  return true;
}

}  // namespace

Image decode_png(std::string_view bytes, const std::string& path) {
  Reading reading{bytes};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, leave, ignore);
  png_infop info = png ? png_create_info_struct(png) : nullptr;
  struct Destroy {
    png_structp& png;
    png_infop& info;
    ~Destroy() { png_destroy_read_struct(&png, &info, nullptr); }
  } const destroy{png, info};
  if (!info) throw Error(path, 0, "libpng " PNG_LIBPNG_VER_STRING " cannot start");
  png_set_read_fn(png, &reading, take);
  Image image;
  std::vector<png_bytep> rows;
  if (!read(png, info, image, rows, path)) throw Error(path, 0, std::string("is damaged: ") + reading.message);
  return image;
}

}  // namespace zs::image
