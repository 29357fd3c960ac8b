// SPDX-License-Identifier: Apache-2.0
#include "compare/elements.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/number.hpp"
#include "base/vectorised.hpp"
#include "compare/measure.hpp"
#include "tensorfile/dtype.hpp"

namespace zs::compare {
namespace {

using tensorfile::Dtype;
using tensorfile::Tensor;

constexpr std::size_t kBlock = 1 << 14;                  // bytes that stay in the first cache
constexpr std::int64_t kForget = std::int64_t{1} << 26;  // bytes after which the pages of mapped files are given back

enum class Kind { real, whole, unsigned_whole };

/// The form of an element: a complex number is two of them.
struct Form {
  Kind kind = Kind::real;
  int width = 32;              ///< bits
  std::uint64_t exponent = 0;  ///< mask of its bits, all set for nan or infinity; 0 for types without these
  int per_element = 1;
};

Form form_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return {Kind::real, 32, 0x7F800000, 1};
    case Dtype::f64:
      return {Kind::real, 64, 0x7FF0000000000000, 1};
    case Dtype::f16:
      return {Kind::real, 16, 0x7C00, 1};
    case Dtype::bf16:
      return {Kind::real, 16, 0x7F80, 1};
    case Dtype::f8_e5m2:
      return {Kind::real, 8, 0x7C, 1};
    case Dtype::f8_e4m3:
      return {Kind::real, 8, 0x7F, 1};
    case Dtype::c64:
      return {Kind::real, 32, 0x7F800000, 2};
    case Dtype::c128:
      return {Kind::real, 64, 0x7FF0000000000000, 2};
    case Dtype::boolean:
    case Dtype::u8:
    case Dtype::u16:
    case Dtype::u32:
    case Dtype::u64:
      return {Kind::unsigned_whole, static_cast<int>(8 * tensorfile::size_of(dtype)), 0, 1};
    default:
      return {Kind::whole, static_cast<int>(8 * tensorfile::size_of(dtype)), 0, 1};
  }
}

double value_of(Dtype dtype, std::uint64_t bits) {
  switch (dtype) {
    case Dtype::f32:
    case Dtype::c64:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case Dtype::f64:
    case Dtype::c128:
      return std::bit_cast<double>(bits);
    case Dtype::f16:
      return static_cast<double>(tensorfile::f16_to_f32(static_cast<std::uint16_t>(bits)));
    case Dtype::bf16:
      return static_cast<double>(tensorfile::bf16_to_f32(static_cast<std::uint16_t>(bits)));
    case Dtype::f8_e5m2:  // the upper half of an f16
      return static_cast<double>(tensorfile::f16_to_f32(static_cast<std::uint16_t>(bits << 8)));
    case Dtype::f8_e4m3: {
      const int exponent = static_cast<int>(bits >> 3 & 15), mantissa = static_cast<int>(bits & 7);
      if ((bits & 0x7F) == 0x7F) return std::numeric_limits<double>::quiet_NaN();
      const double magnitude = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
      return bits & 0x80 ? -magnitude : magnitude;
    }
    default: {
      const Form form = form_of(dtype);
      if (form.kind == Kind::unsigned_whole) return static_cast<double>(bits);
      const int unused = 64 - form.width;
      return static_cast<double>(static_cast<std::int64_t>(bits << unused) >> unused);
    }
  }
}

std::uint64_t bits_at(const char* bytes, int width) {
  std::uint64_t bits = 0;  // little-endian, as the files are
  std::memcpy(&bits, bytes, static_cast<std::size_t>(width / 8));
  return bits;
}

/// Whether a value of a whole block has all bits of `exponent` set. The block's size is known, so that it is
/// vectorised.
template <class Word>
inline __attribute__((always_inline)) bool any_wild(const char* bytes, Word exponent) {
  std::array<Word, kBlock / sizeof(Word)> words;
  std::memcpy(words.data(), bytes, kBlock);
  Word non_finite = 0;
  for (std::size_t i = 0; i < kBlock / sizeof(Word); ++i)
    non_finite = static_cast<Word>(non_finite | static_cast<Word>((words[i] & exponent) == exponent));
  return non_finite != 0;
}
ZS_VECTORISED bool wild_8(const char* bytes, std::uint8_t exponent) { return any_wild(bytes, exponent); }
ZS_VECTORISED bool wild_16(const char* bytes, std::uint16_t exponent) { return any_wild(bytes, exponent); }
ZS_VECTORISED bool wild_32(const char* bytes, std::uint32_t exponent) { return any_wild(bytes, exponent); }
ZS_VECTORISED bool wild_64(const char* bytes, std::uint64_t exponent) { return any_wild(bytes, exponent); }

bool block_is_wild(const char* bytes, const Form& form) {
  if (form.exponent == 0) return false;
  if (form.width == 8) return wild_8(bytes, static_cast<std::uint8_t>(form.exponent));
  if (form.width == 16) return wild_16(bytes, static_cast<std::uint16_t>(form.exponent));
  if (form.width == 32) return wild_32(bytes, static_cast<std::uint32_t>(form.exponent));
  return wild_64(bytes, form.exponent);
}

class Scan {
 public:
  Scan(Dtype dtype, const Tolerance& tolerance) : dtype_(dtype), form_(form_of(dtype)), tolerance_(tolerance) {}

  /// Takes the next bytes of both, whole elements.
  void take(std::string_view a, std::string_view b) {
    std::size_t at = 0;
    for (; at + kBlock <= a.size(); at += kBlock) {
      const bool same = std::memcmp(a.data() + at, b.data() + at, kBlock) == 0;
      if (!same || block_is_wild(a.data() + at, form_)) each(a.data() + at, b.data() + at, kBlock);
      values_ += static_cast<std::int64_t>(kBlock / width());
    }
    each(a.data() + at, b.data() + at, a.size() - at);
    values_ += static_cast<std::int64_t>((a.size() - at) / width());
  }

  Elements found() {
    found_.compared = values_ / form_.per_element;
    for (std::int64_t* const index : {&found_.first, &found_.first_non_finite, &found_.furthest}) {
      if (*index >= 0) *index /= form_.per_element;
    }
    return found_;
  }

 private:
  Dtype dtype_;
  Form form_;
  const Tolerance& tolerance_;
  std::int64_t values_ = 0;
  Elements found_;

  std::size_t width() const { return static_cast<std::size_t>(form_.width / 8); }

  void each(const char* a, const char* b, std::size_t size) {
    for (std::size_t at = 0; at < size; at += width()) {
      const std::uint64_t x = bits_at(a + at, form_.width), y = bits_at(b + at, form_.width);
      const auto non_finite = [&](std::uint64_t bits) {
        return form_.exponent != 0 && (bits & form_.exponent) == form_.exponent;
      };
      const bool not_finite = non_finite(x) || non_finite(y);
      if (x != y || not_finite) one(values_ + static_cast<std::int64_t>(at / width()), x, y, not_finite);
    }
  }

  void one(std::int64_t index, std::uint64_t x, std::uint64_t y, bool not_finite) {
    found_.not_finite += not_finite;
    if (x == y) {
      if (found_.first_non_finite < 0) found_.first_non_finite = index;
      return;
    }
    ++found_.differing;
    const double u = value_of(dtype_, x), v = value_of(dtype_, y);
    const bool real = form_.kind == Kind::real;
    const std::int64_t apart = !real                            ? 0
                               : std::isnan(u) || std::isnan(v) ? kNoDistance
                                                                : ulp_distance(x, y, form_.width);
    if (found_.furthest < 0 || apart > found_.largest.ulp) found_.furthest = index;
    found_.largest.add(u, v, apart);
    if (real && !tolerance_.exact() && tolerance_.accepts(u, v)) return;
    ++found_.refused;
    if (found_.first < 0) found_.first = index;
  }
};

/// The place of element `index` in the storage, in elements.
std::int64_t place_of(const Tensor& tensor, std::int64_t index) {
  std::int64_t at = tensor.offset;
  for (std::size_t d = tensor.shape.size(); d-- > 0; index /= tensor.shape[d])
    at += index % tensor.shape[d] * tensor.strides[d];
  return at;
}

/// The bytes of elements [first, first + count): in place for a contiguous tensor, else gathered in `held`.
std::string_view piece(const Tensor& tensor, bool contiguous, std::int64_t first, std::int64_t count,
                       std::string& held) {
  const std::size_t size = tensorfile::size_of(tensor.dtype);
  const std::string_view bytes = tensor.storage->bytes();
  if (contiguous)
    return bytes.substr(static_cast<std::size_t>(tensor.offset + first) * size, static_cast<std::size_t>(count) * size);
  held.clear();
  for (std::int64_t i = first; i < first + count; ++i)
    held.append(bytes.substr(static_cast<std::size_t>(place_of(tensor, i)) * size, size));
  return held;
}

}  // namespace

Elements elements(const Tensor& a, const Tensor& b, const Tolerance& tolerance) {
  Scan scan(a.dtype, tolerance);
  const bool in_place_a = a.contiguous(), in_place_b = b.contiguous();
  const std::int64_t count = a.count(), size = static_cast<std::int64_t>(tensorfile::size_of(a.dtype));
  const std::int64_t step = (in_place_a && in_place_b ? kForget : 1 << 20) / size;
  std::string held_a, held_b;
  for (std::int64_t first = 0; first < count; first += step) {
    const std::int64_t n = std::min(step, count - first);
    scan.take(piece(a, in_place_a, first, n, held_a), piece(b, in_place_b, first, n, held_b));
    if (n * size >= kForget) a.storage->forget(), b.storage->forget();
  }
  return scan.found();
}

std::vector<double> reals(const Tensor& tensor) {
  const Form form = form_of(tensor.dtype);
  const auto size = tensorfile::size_of(tensor.dtype);
  std::string held;
  const std::string_view bytes = piece(tensor, tensor.contiguous(), 0, tensor.count(), held);
  std::vector<double> values;
  values.reserve(bytes.size() / size);
  for (std::size_t at = 0; at < bytes.size(); at += size)
    values.push_back(value_of(tensor.dtype, bits_at(bytes.data() + at, form.width)));
  return values;
}

Spelt spelt(const Tensor& tensor, std::int64_t index) {
  const Form form = form_of(tensor.dtype);
  const std::size_t size = tensorfile::size_of(tensor.dtype);
  const char* const bytes = tensor.storage->bytes().data() + static_cast<std::size_t>(place_of(tensor, index)) * size;
  Spelt made;
  for (int part = 0; part < form.per_element; ++part) {
    const std::uint64_t bits = bits_at(bytes + part * form.width / 8, form.width);
    const double value = value_of(tensor.dtype, bits);
    const bool exact = form.kind == Kind::real && std::isfinite(value);
    const std::string hex = exact ? hexadecimal(value) : fmt::format("0x{:0{}x}", bits, form.width / 4);
    const std::string decimal =
        form.kind == Kind::real    ? form.width == 64 ? to_text(value) : to_text(static_cast<float>(value))
           : form.kind == Kind::whole ? to_text(static_cast<std::int64_t>(bits << (64 - form.width)) >> (64 - form.width))
                                   : std::to_string(bits);
    made.decimal += (part ? " + i " : "") + decimal;
    made.hexadecimal += (part ? " + i " : "") + hex;
    if (part == 0) made.value = value, made.bits = bits;
  }
  return made;
}

std::int64_t ulp_at(const Tensor& a, const Tensor& b, std::int64_t index) {
  const Form form = form_of(a.dtype);
  const Spelt x = spelt(a, index), y = spelt(b, index);
  if (form.kind != Kind::real) return 0;
  return std::isnan(x.value) || std::isnan(y.value) ? kNoDistance : ulp_distance(x.bits, y.bits, form.width);
}

}  // namespace zs::compare
