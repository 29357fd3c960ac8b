// SPDX-License-Identifier: Apache-2.0
#include "probefile/measure.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "probefile/fields.hpp"

// Functions of share/probe/zs_probe/native.c, which documents them.
extern "C" {
struct ZsStretch {
  std::int64_t tensor, base, begin, end, column;
};
struct ZsSums {
  std::int64_t digest;
  double squares, sketch[8];
};
struct ZsPlace {
  std::int64_t digests, squares, sketch, count;
};
void zs_measure(const ZsStretch* stretches, std::int64_t count, const char* const* addresses,
                const std::int32_t* wanted, int type, int digests_only, const std::int64_t* hashes,
                const std::int64_t* factors, const std::int64_t* row_signs, int threads, ZsSums* sums,
                std::int64_t slots, const std::int64_t* first, double* out);
std::int64_t zs_rows(std::int64_t count, const char* heads, const std::int64_t* sizes, const ZsPlace* places,
                     const double* numbers, std::uint64_t* digests, char* to);
}

namespace zs::probefile {
namespace {

constexpr std::int64_t kRow = 65536, kWidth = 4096, kHeight = 16;  // elements, columns and rows, as in cut.py
constexpr std::int64_t kNumbers = 10;                              // of a slot: digest, squares, sketch

/// splitmix64 of a number.
constexpr std::uint64_t mixed(std::uint64_t number) {
  std::uint64_t z = number + 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}
std::uint64_t factor(std::int64_t row) { return mixed(static_cast<std::uint64_t>(row) ^ 0x5A5A5A5A) | 1; }

/// The hash of each column, and of some more.
const std::vector<std::int64_t>& hashes() {
  static const auto made = [] {
    std::vector<std::int64_t> numbers(2 * kRow);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::bit_cast<std::int64_t>(mixed(i));
    return numbers;
  }();
  return made;
}

std::int64_t elements(const Held& part) {
  std::int64_t whole = 1;
  for (const std::int64_t extent : part.shape) whole *= extent;
  return whole;
}

/// How parts of one type are divided into stretches, and stretches into slots: one for each range of each tensor. As
/// cut.py does it.
struct Cut {
  std::vector<ZsStretch> stretches;
  std::vector<std::int64_t> first;  // stretch of each slot
  std::int64_t rows = 1;            // of the largest tensor

  /// Returns the number of the part's slots.
  std::int64_t add(const Held& part, std::int64_t number) {
    const std::int64_t total = elements(part), ranges = std::clamp<std::int64_t>(total / 16, 1, 16);
    const auto edge = [&](std::int64_t range) { return (range * total + ranges - 1) / ranges; };
    const std::int64_t end = part.begin + part.count();
    for (std::int64_t range = 0; range < ranges; ++range) {
      first.push_back(std::ssize(stretches));
      add(number, part.begin, std::max(part.begin, edge(range)), std::min(end, edge(range + 1)));
    }
    rows = std::max(rows, end / kRow + 1);
    return ranges;
  }

 private:
  void add(std::int64_t number, std::int64_t base, std::int64_t low, std::int64_t high) {
    if (high - low < kRow) {
      for (std::int64_t end; low < high; low = end) {
        end = std::min(high, (low / kWidth + 1) * kWidth);
        stretches.push_back({number, base, low, end, low % kRow / kWidth * kWidth});
      }
      return;
    }
    for (std::int64_t top = low / kRow; top <= (high - 1) / kRow; top += kHeight) {
      const std::int64_t begin = std::max(low, top * kRow), end = std::min(high, (top + kHeight) * kRow);
      for (std::int64_t column = 0; column < kRow; column += kWidth) {
        if (meets(begin, end, column)) stretches.push_back({number, base, begin, end, column});
      }
    }
  }

  /// Whether elements [low, high) have any in kWidth columns from that one on.
  static bool meets(std::int64_t low, std::int64_t high, std::int64_t column) {
    const auto within = [&](std::int64_t row) {
      return std::max(low, row + column) < std::min(high, row + column + kWidth);
    };
    return high - low >= kRow || within(low / kRow * kRow) || within((high - 1) / kRow * kRow);
  }
};

/// The number of a type in native.c.
int native_type(tensorfile::Dtype dtype) {
  using tensorfile::Dtype;
  const auto types = {Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::f16};
  const auto* const found = std::ranges::find(types, dtype);
  if (found == types.end()) throw Error("a recording measures no tensor of " + std::string(name_of(dtype)));
  return static_cast<int>(found - types.begin());
}

/// Measures the parts of one type; their places in `numbers`, to which it adds.
void measure(std::span<const Held> parts, tensorfile::Dtype dtype, int threads, std::vector<double>& numbers,
             std::vector<ZsPlace>& places) {
  Cut cut;
  std::vector<const char*> addresses;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].dtype != dtype) continue;
    const std::int64_t slot = std::ssize(cut.first);
    places[i] = {slot, slot, slot, cut.add(parts[i], std::ssize(addresses))};
    addresses.push_back(parts[i].values.data());
  }
  const std::int64_t slots = std::ssize(cut.first), begin = std::ssize(numbers);
  cut.first.push_back(std::ssize(cut.stretches));
  std::vector<std::int64_t> factors, signs;
  for (std::int64_t row = 0; row < cut.rows; ++row) {
    factors.push_back(std::bit_cast<std::int64_t>(factor(row)));
    signs.push_back(std::bit_cast<std::int64_t>(mixed(static_cast<std::uint64_t>(row) ^ 0x3C3C3C3C)));
  }
  std::vector<ZsSums> sums(cut.stretches.size());
  numbers.resize(numbers.size() + static_cast<std::size_t>(kNumbers * slots));
  zs_measure(cut.stretches.data(), std::ssize(cut.stretches), addresses.data(), nullptr, native_type(dtype), 0,
             hashes().data(), factors.data(), signs.data(), threads, sums.data(), slots, cut.first.data(),
             numbers.data() + begin);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].dtype != dtype) continue;
    const std::int64_t slot = places[i].digests;
    places[i] = {begin + slot, begin + slots + slot, begin + 2 * slots + 8 * slot, places[i].count};
  }
}

/// The value of an element.
double value_of(const Held& part, std::int64_t at) {
  const char* const from = part.values.data() + at * tensorfile::size_of(part.dtype);
  if (part.dtype == tensorfile::Dtype::f64) {
    double value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  if (part.dtype == tensorfile::Dtype::f32) {
    float value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  if (part.dtype == tensorfile::Dtype::bf16) return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31  ? (fraction ? NAN : HUGE_VAL)
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 ? -size : size;
}

/// Those of the kept elements that are in this part.
std::string elements_text(const Held& part) {
  const std::int64_t total = elements(part), end = part.begin + part.count();
  std::string bytes;
  for (std::int64_t k = 0; k < std::min(total, kElements); ++k) {
    const std::int64_t at = k * spacing(total);
    if (at < part.begin || at >= end) continue;
    const double value = value_of(part, at - part.begin);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return part.micro >= 0 || bytes.empty() ? "" : ", \"elements\": \"" + to_base64(bytes) + "\"";
}

/// A JSON object with the fields before a tensor's numbers; its closing brace is missing.
std::string head(const Held& part) {
  return fmt::format("{{\"name\": {}, {}\"dtype\": \"{}\", \"of\": {}, \"shape\": [{}], \"begin\": {}, \"count\": {}{}",
                     nlohmann::json(part.name).dump(),
                     part.micro < 0 ? "" : fmt::format("\"micro\": {}, \"by\": {}, ", part.micro, part.by),
                     safetensors_name(part.dtype), elements(part), fmt::join(part.shape, ", "), part.begin,
                     part.count(), elements_text(part));
}

}  // namespace

std::string rows(std::span<const Held> parts, int threads) {
  std::vector<double> numbers;
  std::vector<ZsPlace> places(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto same = [&](const Held& other) { return other.dtype == parts[i].dtype; };
    if (std::ranges::none_of(parts.first(i), same)) measure(parts, parts[i].dtype, threads, numbers, places);
  }
  std::string heads;
  std::vector<std::int64_t> sizes;
  std::size_t room = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string text = head(parts[i]);
    heads += text;
    sizes.push_back(std::ssize(text));
    room += text.size() + 160 + 88 * static_cast<std::size_t>(places[i].count);
  }
  std::string text(room, '\0');
  std::vector<std::uint64_t> digests(parts.size());
  text.resize(static_cast<std::size_t>(zs_rows(std::ssize(parts), heads.data(), sizes.data(), places.data(),
                                               numbers.data(), digests.data(), text.data())));
  return text;
}

void perturb(std::span<float> values, std::int64_t begin, std::uint64_t seed, std::string_view name) {
  for (const char letter : name) seed = mixed(seed ^ static_cast<unsigned char>(letter));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(values[i]);
    const std::uint32_t by = (mixed((static_cast<std::uint64_t>(begin) + i) ^ seed) & 1) != 0 ? 1 : 0xffffffff;
    if (bits << 1 != 0) values[i] = std::bit_cast<float>(bits + by);
  }
}

std::vector<std::uint64_t> sample_digests(std::int64_t count, std::span<const Samples> tensors) {
  std::vector<std::uint64_t> digests(static_cast<std::size_t>(count));
  for (std::size_t number = 0; number < tensors.size(); ++number) {
    const Samples& tensor = tensors[number];
    const std::uint64_t times = factor(static_cast<std::int64_t>(number));
    const auto size = tensorfile::size_of(tensor.dtype);
    const auto* at = static_cast<const char*>(tensor.values);
    for (std::uint64_t& digest : digests) {
      std::uint64_t sum = 0;
      for (std::int64_t i = 0; i < tensor.numbers; ++i, at += size) {
        std::int64_t bits = 0;
        if (std::int32_t narrow = 0; size == sizeof narrow) {
          std::memcpy(&narrow, at, sizeof narrow);
          bits = narrow;
        } else {
          std::memcpy(&bits, at, sizeof bits);
        }
        sum += static_cast<std::uint64_t>(bits) *
               (static_cast<std::uint64_t>(hashes()[static_cast<std::size_t>(i % kRow)]) | 1);
      }
      digest += sum * times;
    }
  }
  return digests;
}

}  // namespace zs::probefile
