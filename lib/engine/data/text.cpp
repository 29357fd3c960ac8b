// SPDX-License-Identifier: Apache-2.0
#include "data/text.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/number.hpp"
#include "chat/tokens.hpp"
#include "data/corpus.hpp"
#include "data/token_file.hpp"
#include "data/windows.hpp"
#include "token/cache.hpp"
#include "token/document.hpp"
#include "token/tokenize.hpp"
#include "token/tokenizer.hpp"

namespace zs::data {
namespace {

using token::Division;

/// Whether a folder is one of token files: of one for a part by name, or of nothing else. Refused where it is not clear
/// which file is for what; among texts, one that is for no part is left out as what is no text.
bool holds_token_files(const std::string& folder, const std::vector<Division>& divisions,
                       const std::vector<std::string>& left_out) {
  std::vector<std::string> files = left_out;
  for (const Division& division : divisions) files.insert(files.end(), division.files.begin(), division.files.end());
  const bool of_parts = std::ranges::any_of(divisions, [](const Division& division) {
    return !division.name.empty() && std::ranges::any_of(division.files, is_token_file);
  });
  if (!of_parts && (files.empty() || !std::ranges::all_of(files, is_token_file))) return false;
  for (const Division& division : divisions) {
    if (division.name.empty() || division.files.size() > 1 || !is_token_file(division.files.front()))
      throw Error(folder, 0,
                  "has token files with unclear roles: name one, or call them train.bin, "
                  "val.bin and test.bin");
  }
  return true;
}

std::string left_out_note(const std::vector<std::string>& files, const std::string& why) {
  constexpr std::size_t kNamed = 3;
  std::string text = to_text(std::ssize(files)) + " files " + why + ": ";
  for (std::size_t i = 0; i < std::min(files.size(), kNamed); ++i) text += (i == 0 ? "" : ", ") + files[i];
  return text + (files.size() > kNamed ? ", ..." : "");
}

/// The token between documents.
std::int64_t separator(const Text& text, bool token_files) {
  if (text.tokenizer.empty() && !token_files) return kSeparator;
  if (text.tokenizer.empty())
    throw Error(text.path, 0,
                std::string("packing ") + name(text.packing) +
                    ": a token file does not say which id ends a document: name its --tokenizer, or use "
                    "--packing whole");
  if (const auto end = token::open_tokenizer(text.tokenizer)->end_of_text()) return *end;
  throw Error(text.tokenizer, 0, "names no end of text, which ends a document: use --packing whole");
}

/// Whether the files that a training reads hold conversations; all of them or none.
bool holds_chat(const std::vector<Division>& divisions) {
  std::string with, without;
  for (const Division& division : divisions) {
    for (const std::string& file : division.files) (chat::holds_conversations(file) ? with : without) = file;
  }
  if (!with.empty() && !without.empty()) throw Error(without, 0, "holds no conversations, as " + with + " does");
  return !with.empty();
}

constexpr const char* kNoConversations =
    "holds no conversations, of which --loss_on chooses: leave it out, or name JSON Lines of messages, or token files "
    "that zs-tokenize made of them, with their .mask beside";

bool trains(const Division& division) { return division.name.empty() || division.name == "train"; }

/// The files of a data set, by division, and how they hold its tokens.
struct Sources {
  std::vector<Division> divisions;
  std::vector<std::string> left_out;  // files that belong to no division
  bool token_files = false;           // else text, which the tokenizer, or bytes, make tokens of
};

Sources sources_of(const Text& text) {
  const bool folder = is_folder(text.path);
  Sources found{{{"", {text.path}}}, {}};
  if (folder) found.divisions = token::divisions(text.path, found.left_out);
  found.token_files = folder ? holds_token_files(text.path, found.divisions, found.left_out) : is_token_file(text.path);
  if (found.token_files && !text.text_key.empty())
    throw Error(text.path, 0, "has token files, and these no fields: leave --text_key out");
  const bool chat = !found.token_files && text.text_key.empty() && holds_chat(found.divisions);
  if (chat && text.tokenizer.empty())
    throw Error(text.path, 0, "holds conversations, which a tokenizer's chat template makes text of: name --tokenizer");
  if (text.loss_on && !chat && !found.token_files) throw Error(text.path, 0, kNoConversations);
  if (!found.token_files && !text.tokenizer.empty()) {
    found.left_out.clear();
    found.divisions.clear();
    const std::string cache = token::token_cache();
    const int threads = token::processors();
    for (const auto& [name, path] :
         chat ? chat::tokenized(text.path, text.tokenizer, text.loss_on.value_or(chat::LossOn::all), cache, threads,
                                found.left_out)
              : token::tokenized(text.path, text.tokenizer, cache, threads, found.left_out, text.text_key))
      found.divisions.push_back({name, {path}});
  }
  if (!found.token_files && text.tokenizer.empty() && text.vocabulary < Corpus::kVocabulary)
    throw Error("model.vocab_size: " + to_text(text.vocabulary) + " is too small for bytes as tokens (256)");
  if (std::ranges::none_of(found.divisions, trains)) {
    if (found.token_files || !text.tokenizer.empty())
      throw Error(text.path, 0, "has parts to validate and test, and none to train on (train)");
    // A folder of whatever text, in which something happens to be called test.
    std::vector<std::string> files = std::exchange(found.left_out, {});
    for (const Division& division : found.divisions)
      files.insert(files.end(), division.files.begin(), division.files.end());
    std::ranges::sort(files);
    found.divisions = {{"", files}};
  }
  return found;
}

/// The tokens of one division. Adds files that are not text to `no_text`.
std::shared_ptr<const Tokens> tokens_of(const Text& text, const Division& division, bool token_files,
                                        std::vector<std::string>& no_text) {
  const std::int64_t most = trains(division) ? text.most : 0;
  const std::string name = division.name.empty() ? text.path : text.path + " (" + division.name + ")";
  if (!token_files && text.tokenizer.empty())
    return std::make_shared<Corpus>(name, division.files, text.text_key, text.percentage, most, no_text);
  const bool loss_on_all = text.loss_on == chat::LossOn::all;
  if (token_files)
    return std::make_shared<TokenFile>(division.files.front(), text.vocabulary, text.percentage, most, "", loss_on_all);
  try {
    return std::make_shared<TokenFile>(division.files.front(), text.vocabulary, text.percentage, most, name);
  } catch (const Error& error) {
    throw Error(name, 0, "through " + text.tokenizer + ": " + error.what());
  }
}

}  // namespace

Split text(const Text& text) {
  const Sources sources = sources_of(text);
  std::vector<std::string> no_text;
  Parts parts;
  for (const Division& division : sources.divisions) {
    auto& part = division.name == "val" ? parts.validation : division.name == "test" ? parts.test : parts.training;
    part = tokens_of(text, division, sources.token_files, no_text);
  }
  const bool marked = parts.training->marked();
  for (const auto& part : {parts.validation, parts.test}) {
    if (part && part->marked() != marked)
      throw Error((marked ? part : parts.training)->path(), 0,
                  "has no file of marks, but another part has one: make all parts with one run of zs-tokenize");
  }
  if (sources.token_files && text.loss_on && !marked) throw Error(text.path, 0, kNoConversations);
  Cutting cutting{text.length, text.packing, 0, text.too_long};
  const bool joins = text.packing == Packing::whole;
  if (!joins && !marked) cutting.separator = separator(text, sources.token_files);
  Split split = windows(parts, cutting, text.held_out);
  if (!joins && !marked && sources.token_files && split.documents <= std::ssize(sources.divisions))
    throw Error(text.path, 0,
                std::string("packing ") + name(text.packing) + ": the end of text, id " + to_text(cutting.separator) +
                    ", is not between documents: name the --tokenizer of these ids, or use --packing whole");
  split.path = text.path;
  if (!sources.left_out.empty())
    split.notes.push_back(left_out_note(sources.left_out, "belong to no part (train, valid, test) and are left out"));
  if (!no_text.empty())
    split.notes.push_back(left_out_note(no_text, "are not text (they hold NUL bytes) and are left out"));
  return split;
}

}  // namespace zs::data
