// SPDX-License-Identifier: Apache-2.0
#include "token/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/error.hpp"
#include "base/text.hpp"

namespace zs::token {
namespace {

struct Assigned {
  char category[3];
  char32_t first, last;
};

// The differences of DerivedGeneralCategory.txt between Unicode 14.0 and 16.0.
// clang-format off
constexpr Assigned kNewer[] = {
    {"Lu", 0x1C89, 0x1C89}, {"Lu", 0xA7CB, 0xA7CC}, {"Lu", 0xA7DA, 0xA7DA}, {"Lu", 0xA7DC, 0xA7DC},
    {"Lu", 0x10D50, 0x10D65}, {"Ll", 0x1C8A, 0x1C8A}, {"Ll", 0xA7CD, 0xA7CD}, {"Ll", 0xA7DB, 0xA7DB},
    {"Ll", 0x10D70, 0x10D85}, {"Ll", 0x1DF25, 0x1DF2A}, {"Lm", 0x10D4E, 0x10D4E}, {"Lm", 0x10D6F, 0x10D6F},
    {"Lm", 0x16D40, 0x16D42}, {"Lm", 0x16D6B, 0x16D6C}, {"Lm", 0x1E030, 0x1E06D}, {"Lm", 0x1E4EB, 0x1E4EB},
    {"Lo", 0x105C0, 0x105F3}, {"Lo", 0x10D4A, 0x10D4D}, {"Lo", 0x10D4F, 0x10D4F}, {"Lo", 0x10EC2, 0x10EC4},
    {"Lo", 0x1123F, 0x11240}, {"Lo", 0x11380, 0x11389}, {"Lo", 0x1138B, 0x1138B}, {"Lo", 0x1138E, 0x1138E},
    {"Lo", 0x11390, 0x113B5}, {"Lo", 0x113B7, 0x113B7}, {"Lo", 0x113D1, 0x113D1}, {"Lo", 0x113D3, 0x113D3},
    {"Lo", 0x11BC0, 0x11BE0}, {"Lo", 0x11F02, 0x11F02}, {"Lo", 0x11F04, 0x11F10}, {"Lo", 0x11F12, 0x11F33},
    {"Lo", 0x1342F, 0x1342F}, {"Lo", 0x13441, 0x13446}, {"Lo", 0x13460, 0x143FA}, {"Lo", 0x16100, 0x1611D},
    {"Lo", 0x16D43, 0x16D6A}, {"Lo", 0x18CFF, 0x18CFF}, {"Lo", 0x1B132, 0x1B132}, {"Lo", 0x1B155, 0x1B155},
    {"Lo", 0x1E4D0, 0x1E4EA}, {"Lo", 0x1E5D0, 0x1E5ED}, {"Lo", 0x1E5F0, 0x1E5F0}, {"Lo", 0x2B739, 0x2B739},
    {"Lo", 0x2EBF0, 0x2EE5D}, {"Lo", 0x31350, 0x323AF}, {"Mn", 0x0897, 0x0897}, {"Mn", 0x0ECE, 0x0ECE},
    {"Mn", 0x10D69, 0x10D6D}, {"Mn", 0x10EFC, 0x10EFF}, {"Mn", 0x11241, 0x11241}, {"Mn", 0x113BB, 0x113C0},
    {"Mn", 0x113CE, 0x113CE}, {"Mn", 0x113D0, 0x113D0}, {"Mn", 0x113D2, 0x113D2}, {"Mn", 0x113E1, 0x113E2},
    {"Mn", 0x11F00, 0x11F01}, {"Mn", 0x11F36, 0x11F3A}, {"Mn", 0x11F40, 0x11F40}, {"Mn", 0x11F42, 0x11F42},
    {"Mn", 0x11F5A, 0x11F5A}, {"Mn", 0x13440, 0x13440}, {"Mn", 0x13447, 0x13455}, {"Mn", 0x1611E, 0x16129},
    {"Mn", 0x1612D, 0x1612F}, {"Mn", 0x1E08F, 0x1E08F}, {"Mn", 0x1E4EC, 0x1E4EF}, {"Mn", 0x1E5EE, 0x1E5EF},
    {"Mc", 0x0CF3, 0x0CF3}, {"Mc", 0x113B8, 0x113BA}, {"Mc", 0x113C2, 0x113C2}, {"Mc", 0x113C5, 0x113C5},
    {"Mc", 0x113C7, 0x113CA}, {"Mc", 0x113CC, 0x113CD}, {"Mc", 0x113CF, 0x113CF}, {"Mc", 0x1171E, 0x1171E},
    {"Mc", 0x11F03, 0x11F03}, {"Mc", 0x11F34, 0x11F35}, {"Mc", 0x11F3E, 0x11F3F}, {"Mc", 0x11F41, 0x11F41},
    {"Mc", 0x1612A, 0x1612C}, {"Nd", 0x10D40, 0x10D49}, {"Nd", 0x116D0, 0x116E3}, {"Nd", 0x11BF0, 0x11BF9},
    {"Nd", 0x11F50, 0x11F59}, {"Nd", 0x16130, 0x16139}, {"Nd", 0x16D70, 0x16D79}, {"Nd", 0x1CCF0, 0x1CCF9},
    {"Nd", 0x1E4F0, 0x1E4F9}, {"Nd", 0x1E5F1, 0x1E5FA}, {"No", 0x1D2C0, 0x1D2D3}, {"Pd", 0x10D6E, 0x10D6E},
    {"Po", 0x1B4E, 0x1B4F}, {"Po", 0x1B7F, 0x1B7F}, {"Po", 0x113D4, 0x113D5}, {"Po", 0x113D7, 0x113D8},
    {"Po", 0x11B00, 0x11B09}, {"Po", 0x11BE1, 0x11BE1}, {"Po", 0x11F43, 0x11F4F}, {"Po", 0x16D6D, 0x16D6F},
    {"Po", 0x1E5FF, 0x1E5FF}, {"Sm", 0x10D8E, 0x10D8F}, {"So", 0x2427, 0x2429}, {"So", 0x2FFC, 0x2FFF},
    {"So", 0x31E4, 0x31E5}, {"So", 0x31EF, 0x31EF}, {"So", 0x1CC00, 0x1CCEF}, {"So", 0x1CD00, 0x1CEB3},
    {"So", 0x1F6DC, 0x1F6DC}, {"So", 0x1F774, 0x1F776}, {"So", 0x1F77B, 0x1F77F}, {"So", 0x1F7D9, 0x1F7D9},
    {"So", 0x1F8B2, 0x1F8BB}, {"So", 0x1F8C0, 0x1F8C1}, {"So", 0x1FA75, 0x1FA77}, {"So", 0x1FA87, 0x1FA89},
    {"So", 0x1FA8F, 0x1FA8F}, {"So", 0x1FAAD, 0x1FAAF}, {"So", 0x1FABB, 0x1FABF}, {"So", 0x1FAC6, 0x1FAC6},
    {"So", 0x1FACE, 0x1FACF}, {"So", 0x1FADA, 0x1FADC}, {"So", 0x1FADF, 0x1FADF}, {"So", 0x1FAE8, 0x1FAE9},
    {"So", 0x1FAF7, 0x1FAF8}, {"So", 0x1FBCB, 0x1FBEF}, {"Cf", 0x13439, 0x1343F},
};
// clang-format on

/// Bytes of the longest beginning of a character at the front of `text`, which begins none that is whole; at least 1.
std::size_t broken_size(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned lead = byte(0);
  const std::size_t size = lead < 0xC2 || lead > 0xF4 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  std::size_t taken = 1;
  while (taken < size && taken < text.size()) {
    unsigned lowest = 0x80, highest = 0xBF;
    if (taken == 1 && lead == 0xE0) lowest = 0xA0;   // below: overlong
    if (taken == 1 && lead == 0xED) highest = 0x9F;  // above: surrogates
    if (taken == 1 && lead == 0xF0) lowest = 0x90;
    if (taken == 1 && lead == 0xF4) highest = 0x8F;  // above: past U+10FFFF
    if (byte(taken) < lowest || byte(taken) > highest) break;
    ++taken;
  }
  return taken;
}

/// The first byte from `at` on that is not ASCII.
std::size_t past_ascii(std::string_view text, std::size_t at) {
  for (std::uint64_t word = 0; at + 8 <= text.size(); at += 8) {
    std::memcpy(&word, text.data() + at, 8);
    if ((word & 0x8080808080808080U) != 0) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

}  // namespace

std::string_view as_utf8(std::string_view text, std::string& room) {
  std::size_t kept = 0;  // the text before it is in room, once an invalid byte was found
  bool broken = false;
  for (std::size_t at = past_ascii(text, 0); at < text.size(); at = past_ascii(text, at)) {
    const std::size_t size = utf8_size(text.substr(at));
    if (size > 0) {
      at += size;
      continue;
    }
    if (!broken) room.clear();
    broken = true;
    room.append(text, kept, at - kept).append("\xEF\xBF\xBD");
    kept = at += broken_size(text.substr(at));
  }
  if (!broken) return text;
  room.append(text, kept);
  return room;
}

namespace {

/// Marks that Unicode 10 to 15 added. The Python package tokenizers 0.23 composes by Unicode 9: it takes them for
/// letters, which do not change places with adjacent marks.
constexpr Range kNewerMarks[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
    {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},
    {0xA82C, 0xA82C},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
    {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
    {0x11930, 0x11930}, {0x11938, 0x11938}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0},
    {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45},
    {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136},
    {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}};

/// Where the first of them begins, and where it ends; both at the end of the text if there is none.
std::pair<std::size_t, std::size_t> newer_mark(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    const auto byte = static_cast<unsigned char>(text[begin]);
    if (byte < 0xDF) continue;  // of U+07C0 and before, or within a character
    const char32_t character = front(text.substr(begin));
    const bool newer = std::ranges::any_of(
        kNewerMarks, [&](const Range& range) { return range.first <= character && character <= range.second; });
    if (newer) return {begin, begin + (byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4)};
  }
  return {text.size(), text.size()};
}

void add_composed(std::string_view text, std::string& to) {
  utf8proc_uint8_t* made = nullptr;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                             static_cast<utf8proc_ssize_t>(text.size()), &made, options);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, &std::free);
  if (size < 0) throw Error(std::string("a text has no normalization form C: ") + utf8proc_errmsg(size));
  to.append(reinterpret_cast<const char*>(made), static_cast<std::size_t>(size));
}

}  // namespace

std::string_view composed(std::string_view text, std::string& room) {
  // No character below U+0300 is composed of others or combines with the character before it.
  if (std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0xCC; })) return text;
  room.clear();
  for (std::string_view rest = text; !rest.empty();) {
    const auto [begin, end] = newer_mark(rest);
    add_composed(rest.substr(0, begin), room);
    room += rest.substr(begin, end - begin);
    rest.remove_prefix(end);
  }
  return room == text ? text : room;
}

char32_t front(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<char32_t>(static_cast<unsigned char>(text[at])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return lead;
  if (lead < 0xE0) return (lead & 0x1F) << 6 | (byte(1) & 0x3F);
  if (lead < 0xF0) return (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  return (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
}

std::vector<Range> newer(std::string_view category) {
  std::vector<Range> ranges;
  for (const Assigned& row : kNewer) {
    if (!category.empty() && std::string_view(row.category).starts_with(category))
      ranges.emplace_back(row.first, row.last);
  }
  return ranges;
}

const std::vector<Range>& white_space() {
  static const std::vector<Range> ranges = {{0x09, 0x0D},     {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},
                                            {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                                            {0x205F, 0x205F}, {0x3000, 0x3000}};
  return ranges;
}

bool is_white_space(char32_t character) {
  return std::any_of(white_space().begin(), white_space().end(),
                     [&](const Range& range) { return character >= range.first && character <= range.second; });
}

}  // namespace zs::token
