// SPDX-License-Identifier: Apache-2.0
#include "parse/template.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace zs::parse {
namespace {

constexpr std::uint32_t kLongestWhole = 18;

#if defined(__SSE2__)

__m128i load(const char* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }

/// Bit i: the byte at `at` + i is a digit, for 16 bytes.
std::uint32_t digits16(const char* at) {
  const __m128i value = _mm_sub_epi8(load(at), _mm_set1_epi8('0'));
  return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(value, _mm_set1_epi8(9)), value)));
}

/// Bit i: the bytes at `a` + i and `b` + i are the same, for 16 bytes.
std::uint32_t same16(const char* a, const char* b) {
  return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(load(a), load(b))));
}

#else

std::uint32_t digits16(const char* at) {
  std::uint32_t bits = 0;
  for (int i = 0; i < 16; ++i) bits |= static_cast<std::uint32_t>(is_digit(at[i])) << i;
  return bits;
}

std::uint32_t same16(const char* a, const char* b) {
  std::uint32_t bits = 0;
  for (int i = 0; i < 16; ++i) bits |= static_cast<std::uint32_t>(a[i] == b[i]) << i;
  return bits;
}

#endif

std::uint32_t digits32(const char* at) { return digits16(at) | digits16(at + 16) << 16; }

/// As number_at(), for the usual forms only: nullptr at any other.
const char* skip_number(const char* at, bool& whole) {
  const char* const first = at + (*at == '-');
  std::uint32_t others = ~digits32(first);
  if (others == 0 || (others & 1) != 0) return nullptr;  // more than 31 digits, or none
  const char* stop = first + std::countr_zero(others);
  whole = true;
  if (*stop == '.') {
    whole = false;
    others &= others - 1;
    if (others == 0) return nullptr;
    stop = first + std::countr_zero(others);
  }
  if ((*stop | 32) == 'e') {
    whole = false;
    const char* const exponent = stop + 1 + (stop[1] == '-' || stop[1] == '+');
    others = ~digits32(exponent);
    if ((others & 7) == 0 || (others & 1) != 0) return nullptr;  // of three digits: perhaps no double is so small
    stop = exponent + std::countr_zero(others);
  }
  return stop;
}

}  // namespace

void Template::Slot::set_text(std::string_view t) {
  text = t;
  std::copy_n(t.begin(), std::min(t.size(), start.size()), start.begin());
  start_bits = (1U << std::min(t.size(), start.size())) - 1;
}

inline bool Template::Slot::starts(const char* at, const char* end) const {
  if ((same16(at, start.data()) & start_bits) != start_bits) return false;
  return text.size() <= start.size() ||
         (static_cast<std::size_t>(end - at) >= text.size() && std::memcmp(at, text.data(), text.size()) == 0);
}

bool Template::learn(std::string_view line, std::vector<Value> values, bool json) {
  slots_.clear();
  json_ = json;
  std::sort(values.begin(), values.end(),
            [](const Value& a, const Value& b) { return a.field.value.data() < b.field.value.data(); });
  std::vector<Slot> slots;
  const char* at = line.data();
  const char* const end = at + line.size();
  for (const Value& value : values) {
    const std::string_view text = value.field.value;
    if (text.empty() || value.type == metric::Type::text) return false;
    if (text.data() < at || text.data() + text.size() > end) return false;
    Slot& slot = slots.emplace_back();
    slot.set_text({at, static_cast<std::size_t>(text.data() - at)});
    slot.column = value.column;
    slot.whole = value.type == metric::Type::integer;
    if (slot.whole) slot.longest = value.field.key == "rank" ? kLongestRank : kLongestWhole;
    slot.truth = value.field.kind == Kind::word;
    if (slot.truth && text != "True" && text != "False") return false;
    at = text.data() + text.size();
  }
  if (slots.empty()) return false;
  tail_ = {};
  tail_.set_text(std::string(at, end) + "\n");
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const char next = i + 1 < slots.size() ? (slots[i + 1].text + "e").front() : tail_.text.front();
    slots[i].guess = !is_digit(next) && next != '.' && (next | 32) != 'e';
  }
  slots_ = std::move(slots);
  return true;
}

/// Reads a number of another extent than the last one; nullptr where there is none, or an unusual one.
const char* Template::Slot::end_of_number(const char* at, bool json) {
  bool is_whole = false;
  const char* const stop = skip_number(at, is_whole);
  if (!stop || (whole && !is_whole) || stop - at > static_cast<std::ptrdiff_t>(longest)) return nullptr;
  const char* const first = at + (*at == '-');
  const void* const dot = std::memchr(first, '.', static_cast<std::size_t>(stop - first));
  if (json && dot && !is_digit(static_cast<const char*>(dot)[1])) return nullptr;
  const std::uint32_t found = digits32(first);
  length = static_cast<std::uint32_t>(stop - first);
  window = guess && length < 31 ? (2U << length) - 1 : 0;
  digits = found & window;
  const bool plain = std::popcount(~found & window) == (is_whole ? 1 : 2);  // no exponent
  if (!plain) window = 0;
  if (window == 0) digits = 1;  // no guess will do
  point = is_whole ? 0 : static_cast<std::uint32_t>(std::countr_one(found));
  narrow = length < 16;
  return stop;
}

const char* Template::match(const char* at, const char* end, std::vector<std::string_view>& cells) {
  static constexpr std::array<char, kLongest + 1> kTruth = {'0', '1'};
  for (Slot& slot : slots_) {
    if (!slot.starts(at, end)) return nullptr;
    at += slot.text.size();
    if (slot.truth) {
      const bool yes = std::memcmp(at, "True", 4) == 0;
      if (!yes && std::memcmp(at, "False", 5) != 0) return nullptr;
      cells[slot.column] = {kTruth.data() + yes, 1};
      at += yes ? 4 : 5;
      continue;
    }
    const bool minus = *at == '-';
    if (minus && slot.whole) return nullptr;  // a dialect may take digits alone
    const char* const first = at + minus;
    const std::uint32_t digits = slot.narrow ? digits16(first) : digits32(first);
    const bool guessed = (digits & slot.window) == slot.digits && (slot.point == 0 || first[slot.point] == '.');
    const char* const stop = guessed ? first + slot.length : slot.end_of_number(at, json_);
    if (!stop || (json_ && *first == '0' && is_digit(first[1]))) return nullptr;
    cells[slot.column] = {at, static_cast<std::size_t>(stop - at)};
    at = stop;
  }
  return tail_.starts(at, end) ? at + tail_.text.size() - 1 : nullptr;
}

}  // namespace zs::parse
