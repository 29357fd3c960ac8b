// SPDX-License-Identifier: Apache-2.0
// A model's tokenizer: text to ids and back, with the ids that the Python packages tokenizers and sentencepiece give.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "token/bpe.hpp"

namespace zs::token {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// The ids of each text, none for special tokens that no text holds (encode(text, add_special_tokens=False)).
  /// What of a text is not UTF-8 counts as U+FFFD, as Python's errors="replace" has it. The work is shared by
  /// `threads` threads; the ids do not depend on how many. Throws Error where a text cannot be told in tokens.
  virtual std::vector<std::vector<Id>> encode(const std::vector<std::string_view>& texts, int threads) const = 0;
  /// The text of ids, special tokens as they are written. REQUIRES: ids are below size().
  virtual std::string decode(const std::vector<Id>& ids) const = 0;
  /// The largest id and one.
  virtual Id size() const = 0;
  /// The id of a token as the tokenizer's files write it, or nothing.
  virtual std::optional<Id> find(const std::string& token) const = 0;
  /// What stands between documents where nothing else is said: the end-of-sequence token.
  virtual std::optional<Id> end_of_text() const = 0;
};

/// A tokenizer.json, a SentencePiece model (*.model), a vocab.json with merges.txt beside it, or a folder with one of
/// these: of several, tokenizer.model counts before tokenizer.json, and this before vocab.json. Throws Error with file
/// and key at what is damaged and at what it asks for that is not known here.
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& path);

/// Whether the path is a folder in which open_tokenizer() finds a tokenizer.
bool holds_tokenizer(const std::string& path);

/// The files of which open_tokenizer(path) would read: what a cache of tokens depends on.
std::vector<std::string> tokenizer_files(const std::string& path);

/// open_tokenizer for one kind of file. `end` is the content of the end-of-text token, where it is known.
std::unique_ptr<Tokenizer> open_tokenizer_json(const std::string& path, const std::string& end);
std::unique_ptr<Tokenizer> open_vocabulary(const std::string& vocabulary, const std::string& merges,
                                           const std::string& end);
std::unique_ptr<Tokenizer> open_sentencepiece(const std::string& path);

}  // namespace zs::token
