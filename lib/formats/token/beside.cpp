// SPDX-License-Identifier: Apache-2.0
#include "token/beside.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "base/folder.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "token/value.hpp"

namespace zs::token {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Gives added tokens their ids, and keeps them apart by when they are found.
class Adding {
 public:
  Adding(Beside& beside, Id size, const std::function<std::optional<Id>(const std::string&)>& find)
      : beside_(beside), next_(size), find_(find) {}

  bool has(const std::string& content) const { return ids_.contains(content); }
  void add(AddedToken token, bool normalized, const std::optional<Id>& said, const Value& place) {
    const std::optional<Id> piece = find_(token.content);
    token.id = piece ? *piece : next_++;
    if (said && *said != token.id)
      place.wrong("'" + printable(token.content) + "' has the id " + std::to_string(*said) + ", but " +
                  (piece ? "the model's piece of that name has " : "the next behind the model's pieces is ") +
                  std::to_string(token.id));
    if (!ids_.emplace(token.content, token.id).second) place.wrong("'" + printable(token.content) + "' stands twice");
    (normalized ? beside_.normalized : beside_.tokens).push_back(std::move(token));
  }

 private:
  Beside& beside_;
  Id next_;
  const std::function<std::optional<Id>(const std::string&)>& find_;
  std::map<std::string, Id> ids_;
};

AddedToken token_of(const Value& value) {
  if (value.is_string()) return {0, value.text()};
  if (!value.is_object()) value.wrong("expected text, or an object with its content");
  return {0, value["content"].text(), value["single_word"].flag(false), value["lstrip"].flag(false),
          value["rstrip"].flag(false)};
}

Id key_id(const std::string& key, const Value& place) {
  Id id = 0;
  const auto [end, failure] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (failure != std::errc() || end != key.data() + key.size() || key.empty()) place.wrong("is not an id");
  return id;
}

/// The keys of a map by the ids that they are, or have.
std::map<Id, std::string> by_id(const Value& map, bool keys_are_ids) {
  std::map<Id, std::string> keys;
  for (const auto& [key, value] : map.object().items()) {
    const Value place = map[key];
    const Id id = keys_are_ids ? key_id(key, place) : place.id();
    if (!keys.emplace(id, key).second) place.wrong("the id " + std::to_string(id) + " stands twice");
  }
  return keys;
}

/// Adds the tokens of added_tokens_decoder.
void add_decoder(const Value& map, Adding& adding) {
  for (const auto& [id, key] : by_id(map, true)) {
    const Value value = map[key];
    if (!value["content"].text().empty())
      adding.add(token_of(value), value["normalized"].flag(!value["special"].flag(false)), id, value);
  }
}

/// Adds the tokens of added_tokens.json.
void add_file(const Value& map, Adding& adding) {
  for (const auto& [id, key] : by_id(map, false)) {
    if (!key.empty()) adding.add({0, key}, false, id, map[key]);
  }
}

void add_unless_there(const Value& value, Adding& adding) {
  if (value.is_null()) return;
  AddedToken token = token_of(value);
  if (!token.content.empty() && !adding.has(token.content)) adding.add(std::move(token), false, {}, value);
}

/// The special tokens that have names.
void add_named(const Value& file, Adding& adding) {
  for (const char* const name : kSpecialTokens) add_unless_there(file[name], adding);
}

/// The list of more; transformers reads the second where the first has none.
void add_more(const Value& config, Adding& adding) {
  for (const char* const name : {"extra_special_tokens", "additional_special_tokens"}) {
    const Value more = config[name];
    if (more.is_null() || more.is_object()) continue;
    const std::vector<Value> items = more.items();
    for (const Value& item : items) add_unless_there(item, adding);
    if (!items.empty()) return;
  }
}

/// Tokens that only some tokenizers have, such as one for images. Another file or key must give their ids: the order in
/// this file does not.
void add_own(const Value& config, const std::function<bool(const std::string&)>& known, Adding& adding) {
  const auto add = [&](const Value& value) {
    AddedToken token = token_of(value);
    if (token.content.empty() || adding.has(token.content)) return;
    if (!known(token.content))
      value.wrong("'" + printable(token.content) + "' has no id: give it one in added_tokens_decoder");
    adding.add(std::move(token), false, {}, value);
  };
  const auto is_special = [](const std::string& key) {
    return std::ranges::any_of(kSpecialTokens, [&](const char* name) { return key == name; });
  };
  for (const auto& [key, value] : config.object().items()) {
    if (key.ends_with("_token") && !is_special(key) && value.is_string()) add(config[key]);
  }
  for (const char* const name : {"extra_special_tokens", "model_specific_special_tokens"}) {
    const Value map = config[name];
    if (!map.is_object()) continue;
    for (const auto& [key, value] : map.object().items()) add(map[key]);
  }
}

/// Whether transformers puts a blank before text: it asks the tokenizer's class (for Llama, add_prefix_space), not the
/// model.
std::optional<bool> prefix_of(const Value& config) {
  const Value type = config["tokenizer_class"], prefix = config["add_prefix_space"];
  const std::string name = type.is_null() ? "" : type.text();
  if (name.starts_with("GemmaTokenizer")) return false;
  if (!prefix.is_null()) return prefix.flag();
  return name.starts_with("LlamaTokenizer") ? std::optional(true) : std::nullopt;
}

}  // namespace

const std::vector<std::string> kBesideFiles = {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"};

Beside read_beside(const std::string& folder, Id size,
                   const std::function<std::optional<Id>(const std::string&)>& find) {
  Beside beside;
  Adding adding(beside, size, find);
  std::map<std::string, Json> files;
  for (const std::string& name : kBesideFiles) {
    const std::string path = (fs::path(folder) / name).string();
    files[path] = is_there(path) ? read_json(path) : Json::object();
  }
  const auto file = [&](std::size_t number) {
    const auto at = files.find((fs::path(folder) / kBesideFiles[number]).string());
    return Value(at->first, "", at->second);
  };
  const Value config = file(0), map = file(1), added = file(2);
  if (!added.object().empty()) beside.adding = added.file();
  const Value decoder = config["added_tokens_decoder"];
  if (decoder.is_null())
    add_file(added, adding);
  else
    add_decoder(decoder, adding);
  add_named(config, adding);
  if (decoder.is_null()) add_named(map, adding);
  add_more(config, adding);
  add_own(
      config, [&](const std::string& token) { return find(token).has_value(); }, adding);
  beside.prefix = prefix_of(config);
  beside.every = config["legacy"].flag(false);
  return beside;
}

}  // namespace zs::token
