// SPDX-License-Identifier: Apache-2.0
#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include "base/error.hpp"
#include "image/image.hpp"

namespace zs::image {
namespace {

/// libjpeg's own, with the first message and a place to jump to: it must not be left by an exception.
struct Trouble {
  jpeg_error_mgr base;  // first: libjpeg knows it alone
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr jpeg) {
  auto* const trouble = reinterpret_cast<Trouble*>(jpeg->err);
  trouble->base.format_message(jpeg, trouble->message);
  std::longjmp(trouble->back, 1);
}

/// Warnings after which libjpeg continues with invented pixels.
bool damages(int code) {
  return code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_JPEG_EOF || code == JWRN_MUST_RESYNC ||
         code == JWRN_ARITH_BAD_CODE || code == JWRN_BOGUS_PROGRESSION;
}

void warn(j_common_ptr jpeg, int level) {
  if (level < 0 && damages(jpeg->err->msg_code)) leave(jpeg);
}

/// CMYK to RGB as Pillow has it: (255 - c)(255 - k) / 255, rounded.
void to_rgb(const std::uint8_t* cmyk, std::uint8_t* rgb, std::int64_t width, bool inverted) {
  for (std::int64_t x = 0; x < width; ++x, cmyk += 4, rgb += 3) {
    const unsigned flip = inverted ? 255U : 0U, rest = 255U - (cmyk[3] ^ flip);
    for (int c = 0; c < 3; ++c) {
      const unsigned product = (cmyk[c] ^ flip) * rest + 128U;
      rgb[c] = static_cast<std::uint8_t>(rest - ((product + (product >> 8)) >> 8));
    }
  }
}

/// Fills `image`; false, with trouble.message, on failure. Nothing here has a destructor: longjmp leaves it.
bool read(jpeg_decompress_struct& jpeg, Trouble& trouble, std::string_view bytes, Image& image,
          std::vector<std::uint8_t>& row, const std::string& path) {
  if (setjmp(trouble.back) != 0) return false;
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  const bool four = jpeg.num_components == 4;
  jpeg.out_color_space = four ? JCS_CMYK : JCS_RGB;
  image.width = jpeg.image_width;
  image.height = jpeg.image_height;
  check_size(image.width, image.height, path);
  image.rgb.resize(static_cast<std::size_t>(image.width * image.height * 3));
  if (four) row.resize(static_cast<std::size_t>(image.width) * 4);
  jpeg_start_decompress(&jpeg);
  while (jpeg.output_scanline < jpeg.output_height) {
    std::uint8_t* const place = image.rgb.data() + std::int64_t{jpeg.output_scanline} * image.width * 3;
    JSAMPROW rows = four ? row.data() : place;
    jpeg_read_scanlines(&jpeg, &rows, 1);
    if (four) to_rgb(row.data(), place, image.width, jpeg.saw_Adobe_marker);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

}  // namespace

Image decode_jpeg(std::string_view bytes, const std::string& path) {
  jpeg_decompress_struct jpeg{};
  Trouble trouble{};
  jpeg.err = jpeg_std_error(&trouble.base);
  trouble.base.error_exit = leave;
  trouble.base.emit_message = warn;
  struct Destroy {
    jpeg_decompress_struct& jpeg;
    ~Destroy() { jpeg_destroy_decompress(&jpeg); }
  } const destroy{jpeg};
  Image image;
  std::vector<std::uint8_t> row;
  if (!read(jpeg, trouble, bytes, image, row, path))
    throw Error(path, 0, std::string("is damaged: ") + trouble.message);
  return image;
}

}  // namespace zs::image
