// SPDX-License-Identifier: Apache-2.0
// tokenizer.json of the package tokenizers, as far as byte-level BPE goes: what is not known is an error with its key.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "token/byte_level.hpp"
#include "token/value.hpp"

namespace zs::token {
namespace {

using Json = nlohmann::json;

Behaviour behaviour_of(const Value& value) {
  static const std::unordered_map<std::string, Behaviour> kNames = {
      {"Removed", Behaviour::removed},
      {"Isolated", Behaviour::isolated},
      {"MergedWithPrevious", Behaviour::merged_with_previous},
      {"MergedWithNext", Behaviour::merged_with_next},
      {"Contiguous", Behaviour::contiguous}};
  const auto at = kNames.find(value.text());
  if (at == kNames.end()) value.unknown();
  return at->second;
}

Expression expression_of(const Value& pattern) {
  pattern.only({"Regex", "String"});
  const Value regex = pattern["Regex"], text = pattern["String"];
  if (regex.is_null() == text.is_null()) pattern.wrong("expected a Regex or a String");
  return regex.is_null() ? Expression::literal(text.text(), text.place()) : Expression(regex.text(), regex.place());
}

/// Adds the steps of a pre_tokenizer; whether it was the one that turns characters into bytes, after which there are no
/// more.
bool read_steps(const Value& value, Steps& steps) {
  const std::string& type = value["type"].text();
  if (type == "Sequence") {
    bool bytes = false;
    for (const Value& item : value.only({"type", "pretokenizers"})["pretokenizers"].items()) {
      if (bytes) item.wrong("follows ByteLevel, where zs supports nothing");
      bytes = read_steps(item, steps);
    }
    return bytes;
  }
  if (type == "ByteLevel") {
    value.only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    if (value["add_prefix_space"].flag()) steps.push_back({});
    if (value["use_regex"].flag(true)) steps.push_back({{Expression(kGpt2Expression, value.place())}});
    return true;
  }
  if (type == "Split") {
    value.only({"type", "pattern", "behavior", "invert"});
    steps.push_back({{expression_of(value["pattern"])}, behaviour_of(value["behavior"]), value["invert"].flag()});
    return false;
  }
  if (type == "Digits") {
    const bool each = value.only({"type", "individual_digits"})["individual_digits"].flag();
    steps.push_back({{Expression(each ? "\\p{N}" : "\\p{N}+", value.place())}});
    return false;
  }
  value["type"].unknown();
}

/// A part that does not change the ids of text: null, or a type of those known, or a Sequence of them.
void check_part(const Value& value, const std::string& list, const std::vector<std::string>& known) {
  if (value.is_null()) return;
  const std::string& type = value["type"].text();
  if (type == "Sequence") {
    for (const Value& item : value.only({"type", list})[list].items()) check_part(item, list, known);
  } else if (std::ranges::find(known, type) == known.end()) {
    value["type"].unknown();
  }
}

/// REQUIRES: check_part(value, "normalizers", {"NFC"}).
bool composes(const Value& value) {
  if (value.is_null()) return false;
  if (value["type"].text() == "NFC") return true;
  const std::vector<Value> items = value["normalizers"].items();
  return std::ranges::any_of(items, composes);
}

std::pair<std::string, std::string> pair_of(const Value& merge) {
  if (merge.is_array()) {
    const std::vector<Value> two = merge.items();
    if (two.size() != 2) merge.wrong("expected two tokens");
    return {two[0].text(), two[1].text()};
  }
  const std::string& text = merge.text();
  const std::size_t blank = text.find(' ');
  if (blank == std::string::npos || text.find(' ', blank + 1) != std::string::npos)
    merge.wrong("expected two tokens with a blank between them");
  return {text.substr(0, blank), text.substr(blank + 1)};
}

void read_vocabulary(const Value& value, ByteLevelParts& parts) {
  std::unordered_map<Id, std::string> tokens;
  for (const auto& [token, id] : value.object().items()) {
    const Value entry = value[token];
    parts.vocabulary[token] = entry.id();
    const auto [at, fresh] = tokens.try_emplace(entry.id(), token);
    if (!fresh) entry.wrong("has the id " + std::to_string(entry.id()) + ", as '" + printable(at->second) + "' has");
  }
  if (tokens.empty()) value.wrong("holds no token");
}

/// Adds a merge; `wrong` reports an error in it.
template <typename Wrong>
void add_merge(const std::pair<std::string, std::string>& pair, std::uint32_t rank, ByteLevelParts& parts,
               Wrong&& wrong) {
  const auto id = [&](const std::string& token) {
    const auto at = parts.vocabulary.find(token);
    if (at == parts.vocabulary.end()) wrong("'" + printable(token) + "' is not in the vocabulary");
    return at->second;
  };
  const Id left = id(pair.first), right = id(pair.second);
  parts.bpe.merges.add(left, right, {rank, id(pair.first + pair.second)});
}

void read_model(const Value& model, ByteLevelParts& parts) {
  model.only({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
              "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (!model["type"].is_null() && model["type"].text() != "BPE") model["type"].unknown();
  if (model["byte_fallback"].flag(false)) model["byte_fallback"].unknown();
  for (const std::string key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model[key].is_null() && !model[key].text().empty()) model[key].unknown();
  }
  if (const auto& json = model.object();
      json.contains("dropout") && !json["dropout"].is_null() && json["dropout"] != 0.0)
    model["dropout"].unknown();
  parts.bpe.fuse_unknown = model["fuse_unk"].flag(false);
  read_vocabulary(model["vocab"], parts);
  if (const Value unknown = model["unk_token"]; !unknown.is_null()) {
    const auto at = parts.vocabulary.find(unknown.text());
    if (at != parts.vocabulary.end()) parts.bpe.unknown = at->second;
  }
  const std::vector<Value> merges = model["merges"].items();
  parts.bpe.merges = Merges(merges.size());
  std::uint32_t rank = 0;
  for (const Value& merge : merges) {
    if (merge.is_string() && merge.text().starts_with("#version")) continue;
    add_merge(pair_of(merge), rank++, parts, [&](const std::string& what) { merge.wrong(what); });
  }
  if (!model["ignore_merges"].flag(false)) return;
  for (const auto& [token, id] : parts.vocabulary) {
    if (auto word = bytes_of(token)) parts.bpe.words.emplace(std::move(*word), id);
  }
}

void read_added(const Value& list, ByteLevelParts& parts) {
  if (list.is_null()) return;
  auto next = static_cast<Id>(parts.vocabulary.size());
  std::unordered_map<std::string, Id> given;
  for (const Value& item : list.items()) {
    item.only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    const std::string& content = item["content"].text();
    if (content.empty()) continue;
    const auto known = parts.vocabulary.find(content);
    const auto [at, fresh] = given.try_emplace(content, 0);
    if (!fresh) item["content"].wrong("'" + printable(content) + "' stands twice");
    at->second = known != parts.vocabulary.end() ? known->second : next++;
    // The package gives this id whatever the file says.
    if (item["id"].id() != at->second) {
      item["id"].wrong(std::to_string(item["id"].id()) + ", but the place of '" + printable(content) +
                       "' in the vocabulary gives it " + std::to_string(at->second));
    }
    item["special"].flag();
    (item["normalized"].flag() ? parts.normalized : parts.added)
        .push_back({at->second, content, item["single_word"].flag(), item["lstrip"].flag(), item["rstrip"].flag()});
  }
}

void add_bytes(ByteLevelParts& parts) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto at = parts.vocabulary.find(letter_of(static_cast<unsigned char>(byte)));
    if (at != parts.vocabulary.end()) parts.bpe.bytes[static_cast<std::size_t>(byte)] = at->second;
  }
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer_json(const std::string& path, const std::string& end) {
  const Json json = read_json(path);
  const Value file(path, "", json);
  if (!json.is_object() || !json.contains("model"))
    throw Error(path, 0, "is not a tokenizer.json: it has no \"model\"");
  file.only({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor",
             "decoder", "model"});
  if (!file["version"].is_null() && file["version"].text() != "1.0") file["version"].unknown();
  for (const std::string key : {"truncation", "padding"}) {
    if (!file[key].is_null()) file[key].wrong("changes the ids of a text: set it to null");
  }
  check_part(file["normalizer"], "normalizers", {"NFC"});
  // Adds special tokens, if one asks for them, which is not done here.
  check_part(file["post_processor"], "processors",
             {"ByteLevel", "TemplateProcessing", "RobertaProcessing", "BertProcessing"});
  check_part(file["decoder"], "decoders", {"ByteLevel"});
  ByteLevelParts parts;
  parts.end = end;
  parts.composes = composes(file["normalizer"]);
  const Value words = file["pre_tokenizer"];
  if (words.is_null())
    words.wrong("is null: zs knows byte-level BPE here; of a SentencePiece model name tokenizer.model");
  if (!read_steps(words, parts.steps)) words.wrong("does not end with ByteLevel: zs knows byte-level BPE here");
  read_model(file["model"], parts);
  add_bytes(parts);
  read_added(file["added_tokens"], parts);
  return byte_level(std::move(parts));
}

std::unique_ptr<Tokenizer> open_vocabulary(const std::string& vocabulary, const std::string& merges,
                                           const std::string& end) {
  const Json json = read_json(vocabulary);
  ByteLevelParts parts;
  read_vocabulary(Value(vocabulary, "", json), parts);
  const std::string text = Input(merges).read_all();
  parts.bpe.merges = Merges(static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1);
  std::string_view rest = text;
  std::uint32_t rank = 0;
  for (std::int64_t line = 1; !rest.empty(); ++line) {
    std::string_view content = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(content.size() + 1, rest.size()));
    if (content.ends_with('\r')) content.remove_suffix(1);
    if (content.starts_with("#version")) continue;
    const auto wrong = [&](const std::string& what) { throw Error(merges, line, what); };
    const std::size_t blank = content.find(' ');
    if (blank == std::string_view::npos || content.find(' ', blank + 1) != std::string_view::npos)
      wrong("expected two tokens with a blank between them");
    add_merge({std::string(content.substr(0, blank)), std::string(content.substr(blank + 1))}, rank++, parts, wrong);
  }
  add_bytes(parts);
  parts.steps.push_back({{Expression(kGpt2Expression, vocabulary)}});
  parts.end = end;
  if (const auto at = parts.vocabulary.find(end); at != parts.vocabulary.end())
    parts.added.push_back({at->second, end});
  return byte_level(std::move(parts));
}

}  // namespace zs::token
