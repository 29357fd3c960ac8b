// SPDX-License-Identifier: Apache-2.0
#include "base/secret.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace zs {
namespace {

using Words = std::vector<std::string>;

/// "hub.hfToken_ID" as "hub", "hf", "token", "id": in small letters.
Words name_words(std::string_view name) {
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

bool contains(const auto& names, std::string_view word) { return std::ranges::find(names, word) != names.end(); }

// Words that indicate a secret anywhere in a name, and those that do at its end.
constexpr std::array<std::string_view, 10> kAnywhere = {
    "jwt", "secret", "secrets", "password", "passwd", "passphrase", "credentials", "pwd", "credential", "passcode"};
constexpr std::array<std::string_view, 14> kAtEnd = {
    "accountkey", "auth",      "authorization", "apikey", "accesskey", "secretkey", "privatekey",
    "apitoken",   "authtoken", "pass",          "bearer", "hftoken",   "cookie",    "cookies"};
// "key" is a secret alone and after these; elsewhere it is a column of a data set, or a name.
constexpr std::array<std::string_view, 16> kKeysOf = {"api",   "access", "private", "auth",       "wandb", "account",
                                                      "ssh",   "sign",   "signing", "encryption", "aws",   "service",
                                                      "azure", "hf",     "openai",  "license"};
// "token" is one, except for a tokenizer's tokens.
constexpr std::array<std::string_view, 24> kTokensOf = {
    "pad",   "eos",  "bos",  "unk",    "mask",   "sep", "cls",  "special", "image", "start", "end",    "stop",
    "begin", "next", "last", "prefix", "suffix", "per", "byte", "first",   "audio", "video", "target", "class"};

/// The beginnings of tokens, and how many letters follow at least.
struct Form {
  std::string_view front;
  std::size_t least;
  std::string_view more{};  ///< characters that a token may have too, with A-Z, a-z and 0-9
  std::size_t exactly = 0;  ///< this number of letters needs no digit among them
};
constexpr auto kForms = std::to_array<Form>({
    {"hf_", 16, "", 34},
    {"ghp_", 16},
    {"gho_", 16},
    {"ghu_", 16},
    {"ghs_", 16},
    {"ghr_", 16},
    {"glpat-", 16, "-_"},
    {"sk-", 16, "-_"},
    {"AKIA", 16},
    {"ASIA", 16},
    {"github_pat_", 20, "_"},
    {"AIza", 30, "-_"},
    {"xoxb-", 10, "-"},
    {"xoxp-", 10, "-"},
    {"xoxa-", 10, "-"},
    {"npm_", 30},
    {"eyJ", 16, "-_.="},
    {"wandb_v1_", 16, "_"},
    {"nvapi-", 16, "-_"},
    {"gsk_", 16},
    {"pypi-", 30, "-_"},
    {"sk_live_", 16},
    {"ya29.", 16, "-_."},
    {"SG.", 20, "-_."},
});
constexpr std::string_view kBlanks = " \t\r\n";

bool is_letter(char c, std::string_view more) {
  return std::isalnum(static_cast<unsigned char>(c)) || more.find(c) != std::string_view::npos;
}

std::size_t end_of_name(std::string_view text, std::size_t at) {
  while (at < text.size() && is_letter(text[at], "_.-")) ++at;
  return at;
}

/// A part of a text.
struct Part {
  std::size_t begin = 0, end = 0;
};

/// Tokens are random: words that hyphens join are none.
bool is_random(std::string_view text, std::size_t exactly) {
  const auto has = [&](int (*kind)(int)) {
    return std::ranges::any_of(text, [&](unsigned char c) { return kind(c) != 0; });
  };
  return (has(std::isdigit) || text.size() == exactly) && has(std::isupper);
}

/// The token that begins at `at` of `text`; so does MySQL's -pPASSWORD.
Part token(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  if (at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1]))) return {};
  const bool begins = at == 0 || kBlanks.find(text[at - 1]) != std::string_view::npos;
  const auto read = [&](const Form& form) -> Part {
    if (!rest.starts_with(form.front)) return {};
    const std::size_t begin = at + form.front.size();
    std::size_t end = begin;
    while (end < text.size() && is_letter(text[end], form.more)) ++end;
    const bool found = end - begin >= form.least && is_random(text.substr(begin, end - begin), form.exactly);
    return found ? Part{at, end} : Part{};
  };
  for (const Form& form : kForms) {
    if (const Part found = read(form); found.end > 0) return found;
  }
  if (const Part word = begins ? read({"-p", 8}) : Part{}; word.end > 0) return {at + 2, word.end};
  if (rest.starts_with("-----BEGIN ") && rest.substr(0, 60).find("PRIVATE KEY") != std::string_view::npos)
    return {at, text.size()};
  return {};
}

/// The password of a URL whose "://" begins at `at`: from after the colon to the '@'.
Part password(std::string_view text, std::size_t at) {
  at += 3;
  const std::size_t end = std::min(text.find_first_of("/?# \t\n\"'", at), text.size());
  const std::size_t sign = text.substr(0, end).rfind('@'), colon = text.find(':', at);
  return sign != std::string_view::npos && sign >= at && colon < sign && colon + 1 < sign ? Part{colon + 1, sign}
                                                                                          : Part{};
}

/// The end of a quoted text, a list or a mapping that begins at `at`; of another value, where a word ends.
Part value_at(std::string_view text, std::size_t at) {
  const std::size_t escaped = at < text.size() && text[at] == '\\' ? 1 : 0;
  const char c = at + escaped < text.size() ? text[at + escaped] : '\0';
  if (c == '"' || c == '\'') {
    std::size_t end = at + escaped + 1;
    while (end < text.size() && !(text[end] == c && (text[end - 1] == '\\') == (escaped > 0))) ++end;
    return {at + escaped + 1, std::min(end - escaped, text.size())};
  }
  if (c == '[' || c == '{') {
    std::size_t end = at;
    for (std::ptrdiff_t open = 0; end < text.size(); ++end) {
      open += text[end] == '[' || text[end] == '{' ? 1 : text[end] == ']' || text[end] == '}' ? -1 : 0;
      if (open == 0) return {at, end + 1};
    }
    return {at, end};
  }
  return {at, std::min(text.find_first_of(" \t\r\n,;&\"')}]\\", at), text.size())};
}

/// Whether a value cannot be a secret: the name of a variable, a truth value, nothing.
bool is_harmless(std::string_view value) {
  static constexpr std::array kWords = {"true", "false", "none", "null", "True", "False", "None", "~", ""};
  const bool variable =
      value.size() > 1 && value[0] == '$' &&
      (value[1] == '{' || value[1] == '(' || value[1] == '_' || std::isalpha(static_cast<unsigned char>(value[1])));
  return variable || value.starts_with("(withheld") || contains(kWords, value);
}

/// The secret behind the name that begins at `at`: NAME=VALUE, "NAME": VALUE, NAME: VALUE, --NAME VALUE.
Part named(std::string_view text, std::size_t at) {
  const std::size_t end = end_of_name(text, at);
  const std::string_view name = text.substr(at, end - at);
  const char before = at > 0 ? text[at - 1] : ' ';
  std::size_t place = end + (end < text.size() && text[end] == '\\' ? 1 : 0);
  const bool in_quotes = (before == '"' || before == '\'') && place < text.size() && text[place] == before;
  place = in_quotes ? place + 1 : end;
  const std::size_t gap = text.find_first_not_of(kBlanks, place);
  const char sign = gap < text.size() ? text[gap] : ' ';
  const bool option = before == '-' && gap != std::string_view::npos && gap > end && sign != '-' && sign != '=';
  if (!option && sign != '=' && sign != ':') return {};
  const bool of_query = (before == '?' || before == '&') && (name == "sig" || name.ends_with("ignature"));
  if (name == "key" || !(of_query || names_secret(name))) return {};
  std::size_t begin = option ? gap : std::min(text.find_first_not_of(kBlanks, gap + 1), text.size());
  if (sign == ':' && !option) {
    const std::size_t last = text.substr(0, at).find_last_not_of(kBlanks);
    const bool in_mapping = in_quotes || (last < text.size() && (text[last] == '{' || text[last] == ','));
    // "unexpected token: 'x'", "forward pass: 3 ms"
    static constexpr std::array kWords = {"token", "pass", "auth", "bearer"};
    if (!in_mapping && contains(kWords, name)) return {};
    if (text.substr(gap).starts_with("://") || text.substr(gap).starts_with("::")) return {};
  }
  Part value = value_at(text, begin);
  std::string head(name.substr(name.find_last_of("-_.") + 1));
  std::ranges::transform(head, head.begin(), [](unsigned char c) { return std::tolower(c); });
  const bool bare = value.begin == begin && begin < text.size() && text[begin] != '[' && text[begin] != '{';
  if (bare && (head == "cookie" || head == "cookies"))
    value.end = std::min(text.find_first_of("\r\n\"'", begin), text.size());
  if (bare && head == "authorization" && value.end < text.size() && text[value.end] == ' ')  // "Bearer", "Basic"
    value = value_at(text, std::min(text.find_first_not_of(' ', value.end), text.size()));
  return value.begin < value.end && !is_harmless(text.substr(value.begin, value.end - value.begin)) ? value : Part{};
}

/// The secret whose mark (a form, a name, a scheme) begins at `at`; {0, 0} if none does.
Part secret_at(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("://")) return password(text, at);
  if (rest.starts_with("Bearer ") || rest.starts_with("bearer ")) {
    const Part word{at + 7, std::min(text.find_first_of(" \t\n\"'", at + 7), text.size())};
    if (word.end >= word.begin + 8 && !is_harmless(text.substr(word.begin))) return word;
  }
  if (const Part found = token(text, at); found.end > 0) return found;
  const bool begins = is_letter(text[at], "_") && (at == 0 || !is_letter(text[at - 1], "_."));
  return begins && (at < 2 || text[at - 1] != '-' || !is_letter(text[at - 2], "")) ? named(text, at) : Part{};
}

/// `text` with a part withheld for each that `find` finds.
std::string without(std::string_view text, Part (*find)(std::string_view, std::size_t)) {
  std::string clear;
  std::size_t copied = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const Part secret = find(text, at);
    if (secret.end <= at) continue;
    clear.append(text.substr(copied, secret.begin - copied)).append(kWithheld);
    copied = secret.end;
    at = secret.end - 1;
  }
  return clear.append(text.substr(copied));
}

}  // namespace

std::string without_tokens(std::string_view text) { return without(text, token); }

std::string without_secret_values(std::string_view text) { return without(text, secret_at); }

bool holds_secret(std::string_view text) { return without_secret_values(text) != text; }

std::string withheld(std::string_view name, std::string_view value) {
  return names_secret(name) && !is_harmless(value) ? std::string(kWithheld) : without_secret_values(value);
}

bool names_secret(std::string_view name) {
  for (const std::string& word : name_words(name)) {
    if (contains(kAnywhere, word)) return true;
  }
  const Words words = name_words(name.substr(name.rfind('.') + 1));
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
