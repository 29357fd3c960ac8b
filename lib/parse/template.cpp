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

std::uint64_t load(const char* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

#if defined(__SSE2__)

/// Bit i: the byte at `at` + i is no digit, for 32 bytes.
inline std::uint32_t other_than_digits(const char* at) {
  const __m128i zero = _mm_set1_epi8('0'), nine = _mm_set1_epi8(9);
  const auto half = [&](const char* from) {
    const __m128i value = _mm_sub_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)), zero);
    return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(value, nine), value)));
  };
  return ~(half(at) | half(at + 16) << 16);
}

#else

inline std::uint32_t other_than_digits(const char* at) {
  std::uint32_t bits = 0;
  for (int i = 0; i < 32; ++i) bits |= static_cast<std::uint32_t>(!is_digit(at[i])) << i;
  return bits;
}

#endif

/// As number_at(), for the usual forms only: nullptr at any other.
inline const char* skip_number(const char* at, bool& whole) {
  const char* const first = at + (*at == '-');
  std::uint32_t others = other_than_digits(first);
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
    others = other_than_digits(exponent);
    if (others == 0 || (others & 1) != 0) return nullptr;
    stop = exponent + std::countr_zero(others);
  }
  return stop;
}

}  // namespace

void Template::Slot::set_text(std::string_view t) {
  text = t;
  if (text.size() > 16) return;
  for (std::size_t i = 0; i < text.size(); ++i) {
    reinterpret_cast<char*>(words)[i] = text[i];
    reinterpret_cast<char*>(masks)[i] = '\xFF';
  }
}

inline bool Template::Slot::starts(const char* at, const char* end) const {
  if (text.size() > 16) {
    return static_cast<std::size_t>(end - at) >= text.size() && std::memcmp(at, text.data(), text.size()) == 0;
  }
  return (((load(at) & masks[0]) ^ words[0]) | ((load(at + 8) & masks[1]) ^ words[1])) == 0;
}

bool Template::learn(std::string_view line, std::vector<Value> values) {
  slots_.clear();
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

const char* Template::match(const char* at, const char* end, std::vector<std::string_view>& cells) {
  static constexpr char kTruth[] = "01";
  for (Slot& slot : slots_) {
    if (!slot.starts(at, end)) return nullptr;
    at += slot.text.size();
    if (slot.truth) {
      const bool yes = std::memcmp(at, "True", 4) == 0;
      if (!yes && std::memcmp(at, "False", 5) != 0) return nullptr;
      cells[slot.column] = {kTruth + yes, 1};
      at += yes ? 4 : 5;
      continue;
    }
    const char* const first = *at == '-' ? at + 1 : at;
    const std::uint32_t others = other_than_digits(first);
    const char* stop;
    if ((others & slot.window) == slot.others && (slot.point == 0 || first[slot.point] == '.')) {
      stop = first + slot.length;
    } else {
      bool whole = false;
      stop = skip_number(at, whole);
      if (!stop || (slot.whole && (!whole || stop - at > 18))) return nullptr;
      const auto length = static_cast<std::uint32_t>(stop - first);
      const std::uint32_t window = length < 31 ? (2U << length) - 1 : 0;
      const bool plain = std::popcount(others & window) == (whole ? 1 : 2);  // no exponent
      slot.window = slot.guess && plain ? window : 0;
      slot.others = slot.window != 0 ? others & window : 1;
      slot.length = length;
      slot.point = whole ? 0 : static_cast<std::uint32_t>(std::countr_zero(others));
    }
    cells[slot.column] = {at, static_cast<std::size_t>(stop - at)};
    at = stop;
  }
  return tail_.starts(at, end) ? at + tail_.text.size() - 1 : nullptr;
}

}  // namespace zs::parse
