// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include "base/error.hpp"

namespace zs {
namespace {

std::uint32_t byte(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

/// REQUIRES: `character` is one, as utf8_size() cut it.
std::uint32_t code_point(std::string_view character) {
  static constexpr std::array<std::uint32_t, 5> kLead = {0, 0x7F, 0x1F, 0x0F, 0x07};
  std::uint32_t code = byte(character, 0) & kLead[character.size()];
  for (std::size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(character, i) & 0x3F);
  return code;
}

bool acts(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x61C || (code >= 0x200E && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::size_t utf8_size(std::string_view text) {
  if (text.empty()) return 0;
  const std::uint32_t lead = byte(text, 0);
  const std::size_t size = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (size == 0 || size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(text, i) & 0xC0) != 0x80) return 0;
  }
  const std::uint32_t code = code_point(text.substr(0, size));
  static constexpr std::array<std::uint32_t, 5> kFirst = {0, 0, 0x80, 0x800, 0x10000};  // below it: overlong
  return code < kFirst[size] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) ? 0 : size;
}

namespace {
bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }
}  // namespace

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string_view first_characters(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  while (end < text.size() && (count > 0 || !begins_character(text[end]))) count -= begins_character(text[end++]);
  return text.substr(0, end);
}

bool is_control(std::string_view character) { return acts(code_point(character)); }

std::string printable(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    const std::string_view character = text.substr(0, size);
    if (size == 0)
      line += fmt::format("\\x{:02X}", byte(text, 0));
    else if (!is_control(character))
      line += character;
    else if (character == "\n" || character == "\t" || character == "\r")
      line += character == "\n" ? "\\n" : character == "\t" ? "\\t" : "\\r";
    else
      line += fmt::format(fmt::runtime(size == 1 ? "\\x{:02X}" : "\\u{:04X}"), code_point(character));
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return line;
}

std::string backslashed(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\\\";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else
      out += c;
  }
  return out;
}

std::string to_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // OpenSSL ends it with a null
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::string from_base64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0 || text.size() % 4 != 0) throw Error("is not base64");
  bytes.resize(static_cast<std::size_t>(size) - (text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0));
  return bytes;
}

}  // namespace zs
