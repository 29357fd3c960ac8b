// SPDX-License-Identifier: Apache-2.0
#include "base/secret.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

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

// Words that indicate a secret anywhere in a name, and those that do at its end.
constexpr std::array<std::string_view, 10> kAnywhere = {
    "jwt", "secret", "secrets", "password", "passwd", "passphrase", "credentials", "pwd", "credential", "passcode"};
constexpr std::array<std::string_view, 13> kAtEnd = {
    "auth",      "authorization", "apikey", "accesskey", "secretkey", "privatekey", "apitoken",
    "authtoken", "pass",          "bearer", "hftoken",   "cookie",    "cookies"};
// "key" is a secret alone and after these; elsewhere it is a column of a data set, or a name.
constexpr std::array<std::string_view, 16> kKeysOf = {"api",   "access", "private", "auth",       "wandb", "account",
                                                      "ssh",   "sign",   "signing", "encryption", "aws",   "service",
                                                      "azure", "hf",     "openai",  "license"};
// "token" is one, but for those of a tokenizer.
constexpr std::array<std::string_view, 24> kTokensOf = {
    "pad",   "eos",  "bos",  "unk",    "mask",   "sep", "cls",  "special", "image", "start", "end",    "stop",
    "begin", "next", "last", "prefix", "suffix", "per", "byte", "first",   "audio", "video", "target", "class"};

/// The beginnings of tokens, and how many letters follow at least.
struct Form {
  std::string_view front;
  std::size_t least;
  std::string_view more{};  ///< characters that a token may have too, with A-Z, a-z and 0-9
  std::size_t exactly = 0;  ///< so many letters need no digit among them
};
constexpr auto kForms = std::to_array<Form>({
    {"hf_", 16, "", 34},
    {"ghp_", 16},
    {"gho_", 16},
    {"ghu_", 16},
    {"ghs_", 16},
    {"ghr_", 16},
    {"github_pat_", 20, "_"},
    {"glpat-", 16, "-_"},
    {"sk-", 16, "-_"},
    {"AKIA", 16},
    {"ASIA", 16},
    {"AIza", 30, "-_"},
    {"xoxb-", 10, "-"},
    {"xoxp-", 10, "-"},
    {"xoxa-", 10, "-"},
    {"npm_", 30},
    {"eyJ", 16, "-_.="},
    {"wandb_v1_", 16, "_"},
});

bool is_letter(char c, std::string_view more) {
  return std::isalnum(static_cast<unsigned char>(c)) || more.find(c) != std::string_view::npos;
}

/// The end of the secret that begins at `at` of `text`, or `at`.
std::size_t secret_end(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  const bool begins = at == 0 || !std::isalnum(static_cast<unsigned char>(text[at - 1]));
  for (const Form& form : kForms) {
    if (!begins || !rest.starts_with(form.front)) continue;
    std::size_t end = at + form.front.size();
    while (end < text.size() && is_letter(text[end], form.more)) ++end;
    // Tokens are random: words joined by hyphens are none.
    const std::string_view tail = text.substr(at + form.front.size(), end - at - form.front.size());
    const auto has = [&](int (*kind)(int)) {
      return std::any_of(tail.begin(), tail.end(), [&](unsigned char c) { return kind(c) != 0; });
    };
    const bool long_enough = tail.size() >= form.least && (has(std::isdigit) || tail.size() == form.exactly);
    if (long_enough && has(std::isupper)) return end;
  }
  if (rest.starts_with("-----BEGIN ") && rest.substr(0, 60).find("PRIVATE KEY") != std::string_view::npos)
    return text.size();
  return at;
}

/// The password of a URL whose "://" ends at `at`: from after the colon to the '@'; {0, 0} if there is none.
std::pair<std::size_t, std::size_t> password(std::string_view text, std::size_t at) {
  const std::size_t end = std::min(text.find_first_of("/?# \t\n\"'", at), text.size());
  const std::size_t sign = text.substr(0, end).rfind('@'), colon = text.find(':', at);
  return sign != std::string_view::npos && sign >= at && colon < sign && colon + 1 < sign
             ? std::pair{colon + 1, sign}
             : std::pair<std::size_t, std::size_t>{0, 0};
}

}  // namespace

std::string without_secret_values(std::string_view text) {
  std::string clear;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("://")) {
      if (const auto [begin, end] = password(text, at + 3); end > 0) {
        clear += std::string(text.substr(at, begin - at)) + std::string(kWithheld);
        at = end;
        continue;
      }
    }
    for (const std::string_view word : {"Bearer ", "bearer "}) {
      if (!rest.starts_with(word) || rest.size() < word.size() + 8) continue;
      clear += std::string(word) + std::string(kWithheld);
      at = std::min(text.find_first_of(" \t\n\"'", at + word.size()), text.size());
    }
    if (at >= text.size()) break;
    if (const std::size_t end = secret_end(text, at); end > at) {
      clear += kWithheld;
      at = end;
    } else {
      clear += text[at++];
    }
  }
  return clear;
}

bool holds_secret(std::string_view text) { return without_secret_values(text) != text; }

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
    word = without_secret_values(word);
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
