// SPDX-License-Identifier: Apache-2.0
// Numbers as text without loss: the shortest text that reads back to the same bits; nan and inf are values.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace zs {

/// Not a number: the mean of no values.
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Shortest text that reads back to the same value: "0.1", "1e-05", "nan", "-inf".
std::string to_text(double value);
std::string to_text(float value);
std::string to_text(std::int64_t value);

/// Like to_text(), but without an exponent: "0.00001". For log lines that simple scripts read.
std::string to_plain_text(double value);

/// `value` with `digits` significant digits, for people: "1.235", "12.3k" never; an exponent only below 1e-4 or from
/// 1e15. Not for data.
std::string to_rounded_text(double value, int digits);

/// The same, but "0" for 0.
inline std::string to_brief_text(double value, int digits = 3) {
  return value == 0 ? "0" : to_rounded_text(value, digits);
}

/// Like to_text() if that has at most nine characters, else like to_rounded_text(): for people.
std::string to_shown_text(double value, int digits);

/// "1.50 GB", "12.0 MB" (powers of 1000), for people.
std::string to_bytes_text(double bytes);

/// Two lower-case hex digits for each byte.
std::string to_hex(std::string_view bytes);

/// The product of sizes, each at least 0. Throws Error with the name `what` if it exceeds 63 bits.
std::int64_t product(std::string_view what, std::initializer_list<std::int64_t> factors);

/// The whole of `text` as a number, or nothing. Accepts sign, exponent, and nan, inf, infinity in any case; a value
/// above the largest double is inf. Rejects surrounding blanks, and values other than 0 that are below the smallest
/// double (1e-400).
std::optional<double> parse_real(std::string_view text);

/// The whole of `text` as a decimal integer, or nothing (also if it exceeds 64 bits).
std::optional<std::int64_t> parse_int(std::string_view text);

/// Two NaNs with the same bits are the same; 0 and -0 are not.
inline bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

/// Whether two finite numbers are within a tolerance relative to the larger one.
inline bool close_to(double a, double b, double by) {
  return std::fabs(a - b) <= by * std::max(std::fabs(a), std::fabs(b));
}

}  // namespace zs
