// SPDX-License-Identifier: Apache-2.0
#include "config/yaml.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/words.hpp"

namespace zs::config {
namespace {

constexpr int kDeepest = 64;
constexpr std::size_t kAliased = 100'000;  // values that aliases may add to those that are written

[[noreturn]] void fail(const std::string& name, const YAML::Mark& mark, const std::string& what) {
  std::string place = name;
  if (!mark.is_null()) place += ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
  throw Error(place, 0, what);
}

/// Subtracts the values in `node`, with every alias expanded, from `budget`: a few lines of nested aliases can expand
/// to more values than any machine can store.
void spend(const YAML::Node& node, const std::string& name, int depth, std::size_t& budget) {
  if (depth > kDeepest) fail(name, node.Mark(), "nested deeper than " + std::to_string(kDeepest) + " levels");
  if (budget-- == 0) fail(name, node.Mark(), "too many values: aliases repeat one far more often than it is written");
  if (node.IsSequence()) {
    for (const YAML::Node& item : node) spend(item, name, depth + 1, budget);
  } else if (node.IsMap()) {
    for (const auto& pair : node) {
      spend(pair.first, name, depth + 1, budget);
      spend(pair.second, name, depth + 1, budget);
    }
  }
}

/// Pairs in order, each key once.
struct Pairs {
  std::vector<Pair> items;
  std::unordered_map<std::string, std::size_t> places;

  const Pair* find(const std::string& key) const {
    const auto found = places.find(key);
    return found == places.end() ? nullptr : &items[found->second];
  }
  /// Adds `pair`, or puts it in the place of the one of its key.
  void set(Pair pair) {
    const auto [place, added] = places.emplace(pair.key, items.size());
    if (added)
      items.push_back(std::move(pair));
    else
      items[place->second] = std::move(pair);
  }
};

/// Merged keys come first, in order; keys of `map` itself replace them or follow.
Pairs merged_pairs(const YAML::Node& map, const std::string& name, std::string_view what) {
  if (!map.IsMap()) fail(name, map.Mark(), std::string(what) + " must be a mapping of keys to values");
  Pairs local, joined;
  for (const auto& pair : map) {
    if (!pair.first.IsScalar()) fail(name, pair.first.Mark(), "a key must be a plain word or a text");
    const std::string& key = pair.first.Scalar();
    if (key == "<<" && !quoted(pair.first)) {
      const std::vector<YAML::Node> merged =
          pair.second.IsSequence() ? pair.second.as<std::vector<YAML::Node>>() : std::vector{pair.second};
      for (const YAML::Node& node : merged) {
        for (Pair& inner : merged_pairs(node, name, "what '<<' merges").items) {
          if (!joined.find(inner.key)) joined.set(std::move(inner));
        }
      }
      continue;
    }
    if (key.empty()) fail(name, pair.first.Mark(), "a key must not be empty");
    if (const Pair* const earlier = local.find(key))
      fail(name, pair.first.Mark(), "'" + key + "' is given twice, first in line " + std::to_string(earlier->line));
    local.set({key, line_of(pair.first), pair.second});
  }
  for (Pair& pair : local.items) joined.set(std::move(pair));
  return joined;
}

/// Whether bare `text` would be null, a truth value or a number to a reader of YAML.
bool looks_typed(const std::string& text) {
  static constexpr std::array kWords = {"~", "null", "true", "false", "yes", "no", "on", "off"};
  return text.empty() || parse_real(text) || std::find(kWords.begin(), kWords.end(), lower(text)) != kWords.end();
}

}  // namespace

YAML::Node document(std::string_view bytes, const std::string& name) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(bytes));
    if (documents.empty() || !documents[0].IsDefined() || documents[0].IsNull())
      throw Error(name, 0, "is empty, expected YAML");
    if (documents.size() > 1) throw Error(name, line_of(documents[1]), "a second document begins, expected one");
    std::size_t budget = kAliased + bytes.size();
    spend(documents[0], name, 0, budget);
    return documents[0];
  } catch (const YAML::Exception& error) {
    fail(name, error.mark, error.msg);
  }
}

std::vector<Pair> pairs(const YAML::Node& map, const std::string& name, std::string_view what) {
  return merged_pairs(map, name, what).items;
}

std::int64_t line_of(const YAML::Node& node) { return node.Mark().is_null() ? 0 : node.Mark().line + 1; }

bool quoted(const YAML::Node& scalar) { return scalar.IsScalar() && scalar.Tag() == "!"; }

std::string scalar_text(const std::string& text, bool keep_text) {
  static constexpr std::array kMarks = {"<<", "=", "---", "..."};  // a merge, a default, the ends of documents
  const bool typed = looks_typed(text);
  if (typed && !keep_text && !text.empty()) return text;
  const bool plain = !typed && std::find(kMarks.begin(), kMarks.end(), text) == kMarks.end() && !text.starts_with("--");
  YAML::Emitter list;  // within one, more has to be quoted than elsewhere
  list << YAML::Flow << YAML::BeginSeq << (plain ? YAML::Auto : YAML::DoubleQuoted) << text << YAML::EndSeq;
  const std::string_view written = list.c_str();
  return std::string(written.substr(1, written.size() - 2));
}

std::string flow_text(const YAML::Node& node) {
  if (!node.IsDefined() || node.IsNull()) return "null";
  if (node.IsScalar()) return scalar_text(node.Scalar(), quoted(node));
  if (node.IsSequence()) return "[" + joined(node, ", ", flow_text) + "]";
  const auto entry = [](const auto& pair) { return flow_text(pair.first) + ": " + flow_text(pair.second); };
  return "{" + joined(node, ", ", entry) + "}";
}

Entry entry_of_node(const std::string& key, const std::string& origin, const YAML::Node& node) {
  if (node.IsNull()) return {key, "", origin, Kind::null};
  if (!node.IsScalar()) return {key, flow_text(node), origin, Kind::list};
  return {key, node.Scalar(), origin, quoted(node) ? Kind::quoted : Kind::plain};
}

}  // namespace zs::config
