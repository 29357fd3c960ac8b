// SPDX-License-Identifier: Apache-2.0
#include "token/beside.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/folder.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "token/value.hpp"

namespace zs::token {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kSpecialTokens[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                          "pad_token", "cls_token", "mask_token"};

bool is_special(const std::string& key) {
  return std::ranges::any_of(kSpecialTokens, [&](const char* name) { return key == name; });
}

/// The files beside a tokenizer, in the order of kBesideFiles; empty objects for those that are missing.
class Files {
 public:
  explicit Files(const fs::path& folder) {
    for (const std::string& name : kBesideFiles) {
      paths_.push_back((folder / name).string());
      read_.push_back(is_there(paths_.back()) ? read_json(paths_.back()) : Json::object());
    }
  }
  Value config() const { return file(0); }
  Value map() const { return file(1); }
  Value added() const { return file(2); }

 private:
  std::vector<std::string> paths_;
  std::vector<Json> read_;

  Value file(std::size_t number) const { return {paths_[number], "", read_[number]}; }
};

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

/// Calls `each` with the names and values of the tokens that only some tokenizers have, such as one for images.
void for_own(const Value& config, const std::function<void(const std::string&, const Value&)>& each) {
  for (const auto& [key, value] : config.object().items()) {
    if (key.ends_with("_token") && !is_special(key) && value.is_string()) each(key, config[key]);
  }
  for (const char* const name : {"extra_special_tokens", "model_specific_special_tokens"}) {
    const Value map = config[name];
    if (!map.is_object()) continue;
    for (const auto& [key, value] : map.object().items()) each(key, map[key]);
  }
}

/// Adds them. Another file or key must give their ids: the order in this file does not.
void add_own(const Value& config, const std::function<bool(const std::string&)>& known, Adding& adding) {
  for_own(config, [&](const std::string&, const Value& value) {
    AddedToken token = token_of(value);
    if (token.content.empty() || adding.has(token.content)) return;
    if (!known(token.content))
      value.wrong("'" + printable(token.content) + "' has no id: give it one in added_tokens_decoder");
    adding.add(std::move(token), false, {}, value);
  });
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
  const Files files(folder);
  const Value config = files.config(), map = files.map(), added = files.added();
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

std::map<std::string, std::string> named_tokens(const std::string& folder) {
  const Files files(folder);
  std::map<std::string, std::string> named;
  const auto name = [&](const std::string& key, const Value& value) { named[key] = token_of(value).content; };
  const auto name_keys = [&](const Value& file) {
    for (const char* const key : kSpecialTokens) {
      if (const Value value = file[key]; !value.is_null()) name(key, value);
    }
    for_own(file, name);
  };
  name_keys(files.config());
  if (files.config()["added_tokens_decoder"].is_null()) name_keys(files.map());
  std::erase_if(named, [](const auto& each) { return each.second.empty(); });
  return named;
}

}  // namespace zs::token
