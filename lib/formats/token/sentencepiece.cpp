// SPDX-License-Identifier: Apache-2.0
// SentencePiece models, by the library itself.
#include <sentencepiece_processor.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/protobuf.hpp"
#include "base/text.hpp"
#include "token/tokenizer.hpp"
#include "token/unicode.hpp"
#include "token/work.hpp"

namespace zs::token {
namespace {

constexpr std::string_view kSpace = "\u2581";  // replaces a blank

// Fields of sentencepiece_model.proto.
enum ModelField { kTrainerSpec = 2, kNormalizerSpec = 3 };
enum TrainerField { kModelType = 3, kBlankAsSuffix = 24 };
enum NormalizerField {
  kPrecompiledMap = 2,
  kAddDummyPrefix = 3,
  kRemoveExtraBlanks = 4,
  kEscapeBlanks = 5,
  kNormalizationRules = 6
};
constexpr int kBpe = 2;  // TrainerSpec.ModelType

/// Whether a text may be split at a blank between two words, with the rest tokenized separately: true for a BPE that
/// does not change characters, puts a blank before a text, and has no pieces that cross the end of a word. False for
/// Unigram, which adds up the scores of a whole text and rounds.
bool may_be_cut(const sentencepiece::SentencePieceProcessor& model) {
  bool bpe = false, prefix = true, removes = true, escapes = true, maps = false, suffix = false;
  const auto trainer = [&](protozero::pbf_reader spec) {
    while (spec.next()) {
      if (spec.tag() == kModelType)
        bpe = spec.get_enum() == kBpe;
      else if (spec.tag() == kBlankAsSuffix)
        suffix = spec.get_bool();
      else
        spec.skip();
    }
  };
  const auto normalizer = [&](protozero::pbf_reader spec) {
    while (spec.next()) {
      if (spec.tag() == kAddDummyPrefix)
        prefix = spec.get_bool();
      else if (spec.tag() == kRemoveExtraBlanks)
        removes = spec.get_bool();
      else if (spec.tag() == kEscapeBlanks)
        escapes = spec.get_bool();
      else if (spec.tag() == kPrecompiledMap || spec.tag() == kNormalizationRules)
        maps |= spec.get_view().size() > 0;
      else
        spec.skip();
    }
  };
  const std::string proto = model.serialized_model_proto();
  for (protozero::pbf_reader message(proto); message.next();) {
    if (message.tag() == kTrainerSpec)
      trainer(message.get_message());
    else if (message.tag() == kNormalizerSpec)
      normalizer(message.get_message());
    else
      message.skip();
  }
  if (!bpe || !prefix || removes || !escapes || maps || suffix) return false;
  for (int id = 0; id < model.GetPieceSize(); ++id) {
    std::string_view piece = model.IdToPiece(id);
    if (piece.find(' ') != std::string_view::npos) return false;
    while (piece.starts_with(kSpace)) piece.remove_prefix(kSpace.size());
    if (piece.find(kSpace) != std::string_view::npos) return false;
  }
  return true;
}

/// The next blank to cut at, from `at` on; the end of the text if there is none.
std::size_t cut(std::string_view text, std::size_t at) {
  while ((at = text.find(' ', at)) != std::string_view::npos) {
    const std::string_view before = text.substr(0, at), behind = text.substr(at + 1);
    const bool word = !before.empty() && !before.ends_with(' ') && !before.ends_with(kSpace);
    if (word && !behind.empty() && !behind.starts_with(' ') && !behind.starts_with(kSpace)) return at;
    ++at;
  }
  return text.size();
}

class SentencePiece : public Tokenizer {
 public:
  explicit SentencePiece(const std::string& path) : path_(path) {
    check(model_.LoadFromSerializedProto(Input(path).read_all()));
    if (model_.GetPieceSize() <= 0) throw Error(path, 0, "is no SentencePiece model: it holds no piece");
    may_be_cut_ = token::may_be_cut(model_);
  }

  std::vector<std::vector<Id>> encode(const std::vector<std::string_view>& texts, int threads) const override {
    constexpr std::size_t kPart = 1 << 14;
    std::vector<std::string> rooms(texts.size());  // for texts that are not UTF-8
    std::vector<std::string_view> parts;
    std::vector<std::size_t> ends;  // of the parts of each text
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string_view text = as_utf8(texts[i], rooms[i]);
      for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = may_be_cut_ ? cut(text, begin + kPart) : text.size();
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;  // the blank: the next part gets its own
      }
      ends.push_back(parts.size());
    }
    std::vector<std::vector<int>> found(parts.size());
    share(parts.size(), threads, [&](const Take& take) {
      for (std::size_t i = 0; take(i);) check(model_.Encode({parts[i].data(), parts[i].size()}, &found[i]));
    });
    std::vector<std::vector<Id>> ids(texts.size());
    for (std::size_t i = 0, part = 0; i < texts.size(); ++i) {
      for (; part < ends[i]; ++part) ids[i].insert(ids[i].end(), found[part].begin(), found[part].end());
    }
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
    // A missing token has the id of the unknown token.
    if (id < 0 || model_.IdToPiece(id) != token) return {};
    return static_cast<Id>(id);
  }
  std::optional<Id> end_of_text() const override {
    return model_.eos_id() < 0 ? std::nullopt : std::optional(static_cast<Id>(model_.eos_id()));
  }

 private:
  std::string path_;
  sentencepiece::SentencePieceProcessor model_;
  bool may_be_cut_ = false;

  void check(const sentencepiece::util::Status& status) const {
    if (!status.ok()) throw Error(path_, 0, "SentencePiece: " + printable(status.ToString()));
  }
};

}  // namespace

std::unique_ptr<Tokenizer> open_sentencepiece(const std::string& path) { return std::make_unique<SentencePiece>(path); }

}  // namespace zs::token
