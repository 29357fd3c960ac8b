// SPDX-License-Identifier: Apache-2.0
#include "parse/template.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace zs::parse {
namespace {

std::uint64_t load(const char* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// The first byte from `at` on that is no digit; looks at up to 8 bytes behind it.
inline const char* skip_digits(const char* at) {
  if constexpr (std::endian::native == std::endian::little) {
    while (true) {
      const std::uint64_t word = load(at) ^ 0x3030303030303030U;  // digits are now 0 to 9
      const std::uint64_t other = ((word & 0x7F7F7F7F7F7F7F7FU) + 0x7676767676767676U) | word;
      if (const std::uint64_t high = other & 0x8080808080808080U) return at + (std::countr_zero(high) >> 3);
      at += 8;
    }
  }
  while (is_digit(*at)) ++at;
  return at;
}

/// As number_at(), for the usual forms only: nullptr at any other.
inline const char* skip_number(const char* at, bool& whole) {
  const char* const first = at + (*at == '-');
  const char* stop = skip_digits(first);
  if (stop == first) return nullptr;
  whole = true;
  if (*stop == '.') {
    whole = false;
    stop = skip_digits(stop + 1);
  }
  if ((*stop | 32) == 'e') {
    whole = false;
    const char* const exponent = stop + 1 + (stop[1] == '-' || stop[1] == '+');
    stop = skip_digits(exponent);
    if (stop == exponent) return nullptr;
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
  std::sort(values.begin(), values.end(), [](const Value& a, const Value& b) { return a.field.value.data() < b.field.value.data(); });
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
  slots_ = std::move(slots);
  return true;
}

const char* Template::match(const char* at, const char* end, std::vector<std::string_view>& cells) const {
  static constexpr char kTruth[] = "01";
  for (const Slot& slot : slots_) {
    if (!slot.starts(at, end)) return nullptr;
    at += slot.text.size();
    if (slot.truth) {
      const bool yes = std::memcmp(at, "True", 4) == 0;
      if (!yes && std::memcmp(at, "False", 5) != 0) return nullptr;
      cells[slot.column] = {kTruth + yes, 1};
      at += yes ? 4 : 5;
      continue;
    }
    bool whole = false;
    const char* const stop = skip_number(at, whole);
    if (!stop || (slot.whole && (!whole || stop - at > 18))) return nullptr;
    cells[slot.column] = {at, static_cast<std::size_t>(stop - at)};
    at = stop;
  }
  return tail_.starts(at, end) ? at + tail_.text.size() - 1 : nullptr;
}

}  // namespace zs::parse
