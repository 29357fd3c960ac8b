// SPDX-License-Identifier: Apache-2.0
// Keys that look like settings and are none.
#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/words.hpp"
#include "config/config.hpp"
#include "config/known.hpp"

namespace zs::config {
namespace {

std::string_view last_word(std::string_view key) { return key.substr(key.rfind('.') + 1); }

/// Every name of a known key, and every word that people use for it: without its section, of an option, of elsewhere.
struct Names {
  std::vector<std::string> keys;                    // with their sections, aliases too
  std::vector<std::string> words;                   // without
  std::map<std::string, std::string_view> meaning;  // the key of each of both

  Names() {
    for (const Known& row : known()) {
      for (const std::string& key : config::words(std::string(row.key) + " " + std::string(row.aliases))) {
        add(keys, key, row.key);
        if (key.find('.') != std::string::npos) add(words, std::string(last_word(key)), row.key);
      }
    }
    // A key's name counts more than its synonyms.
    for (const Known& row : known()) {
      for (const std::string& option : config::words(row.options)) add(words, option, row.key);
    }
    for (const Known& row : known()) {
      for (const std::string& word : config::words(row.synonyms)) add(words, word, row.key);
    }
  }

 private:
  void add(std::vector<std::string>& list, const std::string& name, std::string_view key) {
    if (meaning.emplace(name, key).second) list.push_back(name);
  }
};

const Names& names() {
  static const Names names;
  return names;
}

bool in_our_section(std::string_view key) {
  static const auto sections = [] {
    std::set<std::string_view> sections;
    for (const Known& row : known()) sections.insert(row.key.substr(0, row.key.find('.')));
    sections.erase("sweep_name");  // a key
    return sections;
  }();
  if (key.find('.') == std::string_view::npos) return false;
  const std::string_view section = key.substr(0, key.find('.'));
  // "learning_rate: {value: 3}": below a setting's own name nothing is read.
  return sections.count(section) > 0 || known_option(section) ||
         std::any_of(sections.begin(), sections.end(),
                     [&](std::string_view name) { return name.size() > 3 && edit_distance(section, name) == 1; });
}

/// The name one edit from `key`, or the same word: among the keys with their sections, or among words for one without.
const std::string* alike(std::string_view key) {
  const bool bare = key.find('.') == std::string_view::npos;
  if (const auto same = names().meaning.find(std::string(key)); same != names().meaning.end()) return &same->first;
  for (const std::string& name : bare ? names().words : names().keys) {
    const bool as_long = name.size() <= key.size() + 1 && key.size() <= name.size() + 1;
    if (as_long && name.size() > 4 && edit_distance(key, name) == 1) return &name;
  }
  return nullptr;
}

bool is_unread(std::string_view key) { return !known(key) && (in_our_section(key) || alike(key)); }

/// The key that is likely meant, or "".
std::string_view meant(std::string_view key) {
  if (const std::string* const name = alike(key)) return names().meaning.at(*name);
  const std::string word(last_word(key));
  if (const auto same = names().meaning.find(word); same != names().meaning.end()) return same->second;
  const auto near = nearest(word, names().words);
  const bool close = !near.empty() && edit_distance(word, near.front()) <= static_cast<int>(word.size() + 1) / 3;
  return close ? names().meaning.at(near.front()) : "";
}

}  // namespace

std::string unread(std::string_view key) {
  if (!is_unread(key)) return "";
  const std::string_view hint = meant(key);
  return "nothing reads '" + std::string(key) + "'" +
         (hint.empty() ? "" : ", did you mean '" + std::string(hint) + "'?");
}

std::vector<std::string> Config::warnings() const {
  constexpr std::size_t kMost = 5;
  std::vector<std::string> found = warnings_, lost;
  for (const Entry& entry : entries_) {
    if (!is_unread(entry.key)) continue;
    // A training that was planned with it and runs without it is lost.
    (in_our_section(entry.key) ? lost : found).push_back(located(entry.origin, 0, unread(entry.key)));
  }
  if (!lost.empty()) throw Error(some_of(lost, kMost, "; "));
  return found;
}

}  // namespace zs::config
