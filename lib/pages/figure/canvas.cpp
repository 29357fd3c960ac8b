// SPDX-License-Identifier: Apache-2.0
#include "figure/canvas.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace zs::figure {

Canvas::Canvas(std::size_t columns, std::size_t rows, bool braille)
    : columns_(columns),
      rows_(rows),
      across_(braille ? 2 : 1),
      down_(braille ? 4 : 1),
      dots_(columns * rows),
      owners_(columns * rows) {}

void Canvas::dot(long x, long y, std::size_t curve) {
  if (x < 0 || y < 0 || x >= static_cast<long>(dots_across()) || y >= static_cast<long>(dots_down())) return;
  // The order of braille dots: 1 2 3 left, 4 5 6 right, then 7 and 8 below.
  static constexpr std::array<std::array<std::uint8_t, 2>, 4> kBits = {
      {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
  const auto ux = static_cast<std::size_t>(x), uy = static_cast<std::size_t>(y);
  const std::size_t cell = uy / down_ * columns_ + ux / across_;
  dots_[cell] |= kBits[uy % down_][ux % across_];
  auto& owners = owners_[cell];
  const auto place = std::lower_bound(owners.begin(), owners.end(), curve);
  if (place == owners.end() || *place != curve) owners.insert(place, curve);
}

void Canvas::line(long x0, long y0, long x1, long y1, std::size_t curve) {
  const long count = std::max(std::labs(x1 - x0), std::labs(y1 - y0));
  for (long i = 0; i <= count; ++i) {
    const double share = count == 0 ? 0 : static_cast<double>(i) / static_cast<double>(count);
    dot(std::lround(static_cast<double>(x0) + share * static_cast<double>(x1 - x0)),
        std::lround(static_cast<double>(y0) + share * static_cast<double>(y1 - y0)), curve);
  }
}

Canvas::Cell Canvas::cell(std::size_t column, std::size_t row, std::size_t turn) const {
  const std::size_t index = row * columns_ + column;
  const auto& owners = owners_[index];
  if (owners.empty()) return {" "};
  Cell result;
  result.empty = false;
  result.curve = owners[column / turn % owners.size()];
  result.shared = owners.size() > 1;
  if (across_ == 1) {
    result.glyph = "*";
  } else {  // U+2800 + dots
    const unsigned code = 0x2800U + dots_[index];
    result.glyph = {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
                    static_cast<char>(0x80 | (code & 0x3F))};
  }
  return result;
}

}  // namespace zs::figure
