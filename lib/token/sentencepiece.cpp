// SPDX-License-Identifier: Apache-2.0
// SentencePiece models, by the library itself.
#include <sentencepiece_processor.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "token/tokenizer.hpp"
#include "token/unicode.hpp"
#include "token/work.hpp"

namespace zs::token {
namespace {

class SentencePiece : public Tokenizer {
 public:
  explicit SentencePiece(const std::string& path) : path_(path) {
    check(model_.LoadFromSerializedProto(Input(path).read_all()));
    if (model_.GetPieceSize() <= 0) throw Error(path, 0, "is no SentencePiece model: it holds no piece");
  }

  std::vector<std::vector<Id>> encode(const std::vector<std::string_view>& texts, int threads) const override {
    std::vector<std::vector<Id>> ids(texts.size());
    share(texts.size(), threads, [&](const Take& take) {
      std::vector<int> found;
      std::string room;
      for (std::size_t i = 0; take(i);) {
        const std::string_view text = as_utf8(texts[i], room);
        check(model_.Encode({text.data(), text.size()}, &found));
        ids[i].assign(found.begin(), found.end());
      }
    });
    return ids;
  }
  std::string decode(const std::vector<Id>& ids) const override {
    std::string text;
    check(model_.Decode(std::vector<int>(ids.begin(), ids.end()), &text));
    return text;
  }
  Id size() const override { return static_cast<Id>(model_.GetPieceSize()); }
  std::optional<Id> find(const std::string& token) const override {
    const int id = model_.PieceToId(token);
    // What is not there has the id of what is unknown.
    if (id < 0 || model_.IdToPiece(id) != token) return {};
    return static_cast<Id>(id);
  }
  std::optional<Id> end_of_text() const override {
    return model_.eos_id() < 0 ? std::nullopt : std::optional(static_cast<Id>(model_.eos_id()));
  }

 private:
  std::string path_;
  sentencepiece::SentencePieceProcessor model_;

  void check(const sentencepiece::util::Status& status) const {
    if (!status.ok()) throw Error(path_, 0, "SentencePiece: " + printable(status.ToString()));
  }
};

}  // namespace

std::unique_ptr<Tokenizer> open_sentencepiece(const std::string& path) { return std::make_unique<SentencePiece>(path); }

}  // namespace zs::token
