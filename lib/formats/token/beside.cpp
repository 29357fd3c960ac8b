// SPDX-License-Identifier: Apache-2.0
#include "token/beside.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "base/folder.hpp"
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
  return {0, value["content"].text(), value["single_word"].flag(false), value["lstrip"].flag(false),
          value["rstrip"].flag(false)};
}

Id key_id(const std::string& key, const Value& place) {
  Id id = 0;
  const auto [end, failure] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (failure != std::errc() || end != key.data() + key.size() || key.empty()) place.wrong("is no id");
  return id;
}

/// Tokens by id, as a file's keys or values say it.
void add_by_id(const Value& map, Adding& adding) {
  std::map<Id, std::string> keys;
  for (const auto& [key, value] : map.object().items()) {
    const Value place = map[key];
    const Id id = value.is_number() ? place.id() : key_id(key, place);
    if (!keys.emplace(id, key).second) place.wrong("the id " + std::to_string(id) + " stands twice");
  }
  for (const auto& [id, key] : keys) {
    const Value value = map[key];
    if (map.object()[key].is_number())
      adding.add({0, key}, false, id, value);
    else if (!value["content"].text().empty())
      adding.add(token_of(value), value["normalized"].flag(!value["special"].flag(false)), id, value);
  }
}

/// Those that have names, and a list of more, where the tokens by id lack them.
void add_named(const Value& file, Adding& adding) {
  std::vector<Value> named;
  for (const char* const name : kSpecialTokens) named.push_back(file[name]);
  for (const char* const name : {"extra_special_tokens", "additional_special_tokens"}) {
    if (const Value list = file[name]; list.is_array())
      for (const Value& item : list.items()) named.push_back(item);
  }
  for (const Value& value : named) {
    if (value.is_null()) continue;
    AddedToken token = token_of(value);
    if (!token.content.empty() && !adding.has(token.content)) adding.add(std::move(token), false, {}, value);
  }
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
  if (const Value by_id = config["added_tokens_decoder"]; !by_id.is_null())
    add_by_id(by_id, adding);
  else
    add_by_id(added, adding);
  add_named(config, adding);
  if (config["added_tokens_decoder"].is_null()) add_named(map, adding);
  if (const Value prefix = config["add_prefix_space"]; !prefix.is_null()) beside.prefix = prefix.flag();
  beside.every = config["legacy"].flag(false);
  return beside;
}

}  // namespace zs::token
