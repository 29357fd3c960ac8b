// SPDX-License-Identifier: Apache-2.0
#include "base/number.hpp"

#include <fmt/format.h>
#include <array>
#include <charconv>
#include <cmath>

#include "base/error.hpp"

namespace zs {
namespace {

template <typename T, typename... Format>
std::string shortest(T value, Format... format) {
  std::array<char, 512> buffer;  // fixed notation of 1e308 needs 309 digits
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format...).ptr;
  return {buffer.data(), end};
}

std::string non_finite(double value) {
  if (std::isnan(value)) return "nan";
  return value < 0 ? "-inf" : "inf";
}

}  // namespace

std::string to_text(double value) { return std::isfinite(value) ? shortest(value) : non_finite(value); }
std::string to_text(float value) { return std::isfinite(value) ? shortest(value) : non_finite(value); }
std::string to_text(std::int64_t value) { return std::to_string(value); }

std::string to_plain_text(double value) {
  return std::isfinite(value) ? shortest(value, std::chars_format::fixed) : non_finite(value);
}

std::string to_rounded_text(double value, int digits) {
  if (!std::isfinite(value)) return non_finite(value);
  const double magnitude = std::fabs(value);
  if (magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e15)) return fmt::format("{:.{}e}", value, digits - 1);
  const int before_point = magnitude < 1 ? 0 : static_cast<int>(std::floor(std::log10(magnitude))) + 1;
  const int leading_zeros =
      magnitude == 0 || magnitude >= 1 ? 0 : -static_cast<int>(std::floor(std::log10(magnitude))) - 1;
  return fmt::format("{:.{}f}", value, std::max(0, digits - before_point + leading_zeros));
}

std::string to_bytes_text(double bytes) {
  static constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  while (std::fabs(bytes) >= 1000 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  if (std::fabs(bytes) >= 1e6) return to_rounded_text(bytes, 3) + " " + kUnits[unit];
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 2, kUnits[unit]);
}

std::string to_shown_text(double value, int digits) {
  constexpr std::size_t kShort = 9;
  const std::string text = to_text(value);
  return text.size() <= kShort ? text : to_rounded_text(value, digits);
}

std::string to_hex(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) text += {kDigits[static_cast<unsigned char>(byte) >> 4], kDigits[byte & 15]};
  return text;
}

std::int64_t product(std::string_view what, std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  std::string text;
  bool fits = true;
  for (const std::int64_t factor : factors) {
    text += (text.empty() ? "" : " x ") + std::to_string(factor);
    fits = !__builtin_mul_overflow(product, factor, &product) && fits;
  }
  if (!fits) throw Error(std::string(what) + ": " + text + " is more than any machine counts");
  return product;
}

std::optional<double> parse_real(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-') || text.starts_with('+')) return {};
  }
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (stop != end || text.empty()) return {};
  if (failure == std::errc::result_out_of_range) value = std::strtod(std::string(text).c_str(), nullptr);  // 1e400
  if (failure != std::errc() && failure != std::errc::result_out_of_range) return {};
  // 1e-400 is not 0, and no double is so small.
  if (value == 0 && text.substr(0, text.find_first_of("eE")).find_first_of("123456789") != std::string_view::npos)
    return {};
  if (text.back() == ')') return {};  // nan(payload) is C, not data
  return value;
}

std::optional<std::int64_t> parse_int(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return {};
  }
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || stop != end || text.empty()) return {};
  return value;
}

}  // namespace zs
