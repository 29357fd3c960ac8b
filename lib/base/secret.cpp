// SPDX-License-Identifier: Apache-2.0
#include "base/secret.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace zs {
namespace {

using Words = std::vector<std::string>;

/// "hub.hfToken_ID" as "hub", "hf", "token", "id": in small letters.
Words words_of(std::string_view name) {
  Words words(1);
  bool was_small = false;
  for (const char letter : name) {
    const auto c = static_cast<unsigned char>(letter);
    const bool begins = std::isupper(c) && was_small;
    was_small = std::islower(c);
    if ((begins || !std::isalnum(c)) && !words.back().empty()) words.emplace_back();
    if (std::isalnum(c)) words.back() += static_cast<char>(std::tolower(c));
  }
  if (words.back().empty() && words.size() > 1) words.pop_back();
  return words;
}

bool contains(const auto& names, std::string_view word) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

// Words that mean a secret wherever they stand, and at the end.
constexpr std::array<std::string_view, 9> kAnywhere = {"jwt",        "secret",      "secrets", "password",  "passwd",
                                                       "passphrase", "credentials", "pwd",     "credential"};
constexpr std::array<std::string_view, 11> kAtEnd = {"auth",      "authorization", "apikey",   "accesskey",
                                                     "secretkey", "privatekey",    "apitoken", "authtoken",
                                                     "pass",      "bearer",        "hftoken"};
// "key" is a secret alone and after these; elsewhere it is a column of a data set, or a name.
constexpr std::array<std::string_view, 16> kKeysOf = {"api",   "access", "private", "auth",       "wandb", "account",
                                                      "ssh",   "sign",   "signing", "encryption", "aws",   "service",
                                                      "azure", "hf",     "openai",  "license"};
// "token" is one, but for those of a tokenizer.
constexpr std::array<std::string_view, 24> kTokensOf = {
    "pad",   "eos",  "bos",  "unk",    "mask",   "sep", "cls",  "special", "image", "start", "end",    "stop",
    "begin", "next", "last", "prefix", "suffix", "per", "byte", "first",   "audio", "video", "target", "class"};

}  // namespace

bool names_secret(std::string_view name) {
  for (const std::string& word : words_of(name)) {
    if (contains(kAnywhere, word)) return true;
  }
  const Words words = words_of(name.substr(name.rfind('.') + 1));
  const std::string_view last = words.back(), before = words.size() > 1 ? words[words.size() - 2] : std::string_view();
  if (contains(kAtEnd, last)) return true;
  if (last == "key" || last == "keys") return (before.empty() && last == "key") || contains(kKeysOf, before);
  return last == "token" && !contains(kTokensOf, before);
}

std::vector<std::string> without_secrets(std::vector<std::string> words) {
  bool named = false;  // by the word before
  for (std::string& word : words) {
    if (named && !word.starts_with('-')) word = kWithheld;
    named = false;
    std::size_t begin = word.find_first_not_of('-');
    if (begin == std::string::npos) continue;
    const bool option = begin > 0;
    std::size_t equals = word.find('=', begin);
    named = option && equals == std::string::npos && names_secret(std::string_view(word).substr(begin));
    // "--set=wandb.api_key=..." has two.
    for (; equals != std::string::npos; begin = equals + 1, equals = word.find('=', begin)) {
      if (!names_secret(std::string_view(word).substr(begin, equals - begin))) continue;
      word.replace(equals + 1, std::string::npos, kWithheld);
      break;
    }
  }
  return words;
}

}  // namespace zs
