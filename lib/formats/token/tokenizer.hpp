// SPDX-License-Identifier: Apache-2.0
// A model's tokenizer: text to ids and back, with the same ids as the Python packages tokenizers and sentencepiece.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "token/bpe.hpp"

namespace zs::token {

/// The ids of a text, and the byte at which each ends; the first begins at 0.
struct Placed {
  std::vector<Id> ids{};
  std::vector<std::size_t> ends{};
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// The ids of each text, without added special tokens (encode(text, add_special_tokens=False)). Invalid UTF-8 counts
  /// as U+FFFD, as in Python's errors="replace". `threads` threads share the work; the ids do not depend on their
  /// number. Throws Error if a text cannot be tokenized.
  virtual std::vector<std::vector<Id>> encode(const std::vector<std::string_view>& texts, int threads) const = 0;
  /// Like encode(), for the output of chat templates: special tokens count everywhere, and each byte belongs to a
  /// token. Throws Error, without place, if the tokens do not give the text.
  virtual std::vector<Placed> encode_chat(const std::vector<std::string_view>& texts, int threads) const = 0;
  /// The text that encode() gives the ids of: some tokenizers compose letters and accents first.
  virtual std::string normalized(std::string_view text) const { return std::string(text); }
  /// The text of ids, special tokens written out. REQUIRES: ids are below size().
  virtual std::string decode(const std::vector<Id>& ids) const = 0;
  /// The largest id plus one.
  virtual Id size() const = 0;
  /// The contents of bos_token, eos_token and unk_token, where the tokenizer's own file names them.
  virtual std::map<std::string, std::string> named() const { return {}; }
  /// The id of a token as written in the tokenizer's files, or nothing.
  virtual std::optional<Id> find(const std::string& token) const = 0;
  /// The default separator of documents: the end-of-sequence token.
  virtual std::optional<Id> end_of_text() const = 0;
};

/// Opens a tokenizer.json, a SentencePiece model (*.model), a vocab.json with merges.txt next to it, or a folder with
/// one of these, in this order of preference: tokenizer.model, tokenizer.json, vocab.json. Throws Error with file and
/// key if it is damaged or needs an unsupported feature.
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& path);

/// Whether the path is a folder in which open_tokenizer() finds a tokenizer.
bool holds_tokenizer(const std::string& path);

/// The files that open_tokenizer(path) would read: a cache of tokens depends on them.
std::vector<std::string> tokenizer_files(const std::string& path);

/// open_tokenizer() for one kind of file. `end` is the end-of-text token, if known.
std::unique_ptr<Tokenizer> open_tokenizer_json(const std::string& path, const std::string& end);
std::unique_ptr<Tokenizer> open_vocabulary(const std::string& vocabulary, const std::string& merges,
                                           const std::string& end);
std::unique_ptr<Tokenizer> open_sentencepiece(const std::string& path);

/// Throws Error: the file at `path` adds tokens to the tokens of `file`.
[[noreturn]] void refuse_added(const std::string& path, const std::string& file);

}  // namespace zs::token
