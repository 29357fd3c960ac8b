// SPDX-License-Identifier: Apache-2.0
// SentencePiece models, by the library itself.
#include <sentencepiece_processor.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/protobuf.hpp"
#include "base/text.hpp"
#include "token/beside.hpp"
#include "token/tokenize.hpp"
#include "token/tokenizer.hpp"
#include "token/unicode.hpp"

namespace zs::token {
namespace {

using protobuf::Field;
using protozero::pbf_reader;

constexpr std::string_view kSpace = "\u2581";  // replaces a blank

// Fields of sentencepiece_model.proto.
enum ModelField { kPieces = 1, kTrainerSpec = 2, kNormalizerSpec = 3 };
enum TrainerField { kModelType = 3, kBlankAsSuffix = 24 };
enum NormalizerField {
  kPrecompiledMap = 2,
  kAddDummyPrefix = 3,
  kRemoveExtraBlanks = 4,
  kEscapeBlanks = 5,
  kNormalizationRules = 6
};
enum PieceField { kPiece = 1, kType = 3 };
constexpr int kBpe = 2;                      // TrainerSpec.ModelType
constexpr int kControl = 3, kOfTheUser = 4;  // SentencePiece.Type

/// How a model treats a text.
struct Habits {
  bool bpe = false;
  bool prefix = true;   ///< puts a blank before it
  bool removes = true;  ///< removes blanks at its ends, and all but one between words
  bool escapes = true;
  bool maps = false;  ///< changes characters
  bool suffix = false;
};

Habits habits_of(const std::string& proto) {
  Habits habits;
  const auto type = [&](pbf_reader& spec) { habits.bpe = spec.get_enum() == kBpe; };
  const auto maps = [&](pbf_reader& spec) { habits.maps |= spec.get_view().size() > 0; };
  const auto trainer = [&](pbf_reader& message) {
    protobuf::read(message.get_message(), Field{kModelType, type}, Field{kBlankAsSuffix, habits.suffix});
  };
  const auto normalizer = [&](pbf_reader& message) {
    protobuf::read(message.get_message(), Field{kAddDummyPrefix, habits.prefix},
                   Field{kRemoveExtraBlanks, habits.removes}, Field{kEscapeBlanks, habits.escapes},
                   Field{kPrecompiledMap, maps}, Field{kNormalizationRules, maps});
  };
  protobuf::read(pbf_reader(proto), Field{kTrainerSpec, trainer}, Field{kNormalizerSpec, normalizer});
  return habits;
}

/// Whether a text may be split at a blank between two words, with the rest tokenized separately: true for a BPE that
/// does not change characters, puts a blank before a text, and has no pieces that cross the end of a word. False for
/// Unigram, which adds up the scores of a whole text and rounds.
bool may_be_cut(const sentencepiece::SentencePieceProcessor& model, const Habits& habits) {
  if (!habits.bpe || !habits.prefix || habits.removes || !habits.escapes || habits.maps || habits.suffix) return false;
  for (int id = 0; id < model.GetPieceSize(); ++id) {
    std::string_view piece = model.IdToPiece(id);
    if (piece.find(' ') != std::string_view::npos) return false;
    while (piece.starts_with(kSpace)) piece.remove_prefix(kSpace.size());
    if (piece.find(kSpace) != std::string_view::npos) return false;
  }
  return true;
}

/// A normalizer_spec of a model: add_dummy_prefix is false.
std::string without_prefix() {
  std::string spec, model;
  protozero::pbf_writer(spec).add_bool(kAddDummyPrefix, false);
  protozero::pbf_writer(model).add_message(kNormalizerSpec, spec);
  return model;
}

/// A piece's id; a missing one has the id of the unknown piece.
std::optional<Id> piece_of(const sentencepiece::SentencePieceProcessor& model, const std::string& token) {
  const int id = model.PieceToId(token);
  return id < 0 || model.IdToPiece(id) != token ? std::nullopt : std::optional(static_cast<Id>(id));
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

/// The tokens that the folder adds, with the model's control and user-defined pieces: chat looks for these in a text.
Beside added_of(const sentencepiece::SentencePieceProcessor& model, const std::string& proto, const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const auto size = static_cast<Id>(model.GetPieceSize());
  Beside beside = read_beside(folder, size, [&](const std::string& token) { return piece_of(model, token); });
  const auto has = [&](const std::string& content) {
    const auto is = [&](const AddedToken& token) { return token.content == content; };
    return std::ranges::any_of(beside.tokens, is) || std::ranges::any_of(beside.normalized, is);
  };
  Id id = 0;
  for (pbf_reader message(proto); message.next(kPieces); ++id) {
    std::string content;
    int type = 1;
    protobuf::read(message.get_message(), Field{kPiece, content},
                   Field{kType, [&](pbf_reader& piece) { type = piece.get_enum(); }});
    if ((type == kControl || type == kOfTheUser) && !content.empty() && !has(content))
      beside.tokens.push_back({id, content});
  }
  return beside;
}

class SentencePiece : public Tokenizer {
 public:
  explicit SentencePiece(const std::string& path) : path_(path) {
    check(model_.LoadFromSerializedProto(Input(path).read_all()));
    if (model_.GetPieceSize() <= 0) throw Error(path, 0, "is not a SentencePiece model: it holds no piece");
    const std::string proto = model_.serialized_model_proto();
    habits_ = habits_of(proto);
    may_be_cut_ = token::may_be_cut(model_, habits_);
    // If a field occurs twice, the last one counts: chat puts blanks before text itself.
    check(bare_.LoadFromSerializedProto(proto + without_prefix()));
    beside_ = added_of(model_, proto, path);
    added_ = AddedTokens(beside_.tokens);
    normalized_ = AddedTokens(beside_.normalized);
    for (const auto* tokens : {&beside_.tokens, &beside_.normalized}) {
      for (const AddedToken& token : *tokens) {
        by_content_[token.content] = token.id;
        if (token.id >= pieces()) beyond_.emplace(token.id, token.content);
      }
    }
  }

  std::vector<std::vector<Id>> encode(const std::vector<std::string_view>& texts, int threads) const override {
    if (!beside_.adding.empty()) refuse_added(beside_.adding, path_);
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
  std::vector<Placed> encode_chat(const std::vector<std::string_view>& texts, int threads) const override {
    if (habits_.removes || habits_.maps)
      throw Error(std::string("is a SentencePiece model that changes text, which chat needs as it is: it ") +
                  (habits_.maps ? "replaces characters" : "removes blanks"));
    std::vector<Placed> placed(texts.size());
    share(texts.size(), threads, [&](const Take& take) {
      for (std::size_t i = 0; take(i);) placed[i] = place(texts[i]);
    });
    return placed;
  }
  std::string decode(const std::vector<Id>& ids) const override {
    std::string text;
    for (auto at = ids.begin(); at != ids.end();) {
      const auto end = std::find_if(at, ids.end(), [&](Id id) { return id >= pieces(); });
      std::string part;
      check(model_.Decode(std::vector<int>(at, end), &part));
      text += part;
      at = end;
      for (; at != ids.end() && *at >= pieces(); ++at) text += beyond_.at(*at);
    }
    return text;
  }
  Id size() const override { return beyond_.empty() ? pieces() : beyond_.rbegin()->first + 1; }
  std::map<std::string, std::string> named() const override {
    std::map<std::string, std::string> names;
    for (const auto& [name, id] :
         {std::pair{"bos_token", model_.bos_id()}, {"eos_token", model_.eos_id()}, {"unk_token", model_.unk_id()}}) {
      if (id >= 0) names[name] = model_.IdToPiece(id);
    }
    return names;
  }
  std::optional<Id> find(const std::string& token) const override {
    const auto at = by_content_.find(token);
    return at != by_content_.end() ? std::optional(at->second) : piece_of(model_, token);
  }
  std::optional<Id> end_of_text() const override {
    return model_.eos_id() < 0 ? std::nullopt : std::optional(static_cast<Id>(model_.eos_id()));
  }

 private:
  std::string path_;
  sentencepiece::SentencePieceProcessor model_;
  Habits habits_;
  bool may_be_cut_ = false;
  sentencepiece::SentencePieceProcessor bare_;  // without a blank before each text
  Beside beside_;
  AddedTokens added_{{}}, normalized_{{}};
  std::map<std::string, Id> by_content_;  // added tokens
  std::map<Id, std::string> beyond_;      // ids that are not pieces

  Id pieces() const { return static_cast<Id>(model_.GetPieceSize()); }
  Placed place(std::string_view text) const {
    std::vector<Stretch> first, parts;
    added_.find(text, first);
    for (const Stretch& stretch : first) {
      if (stretch.token)
        parts.push_back(stretch);
      else
        normalized_.find(stretch.text, parts);
    }
    Placed placed;
    for (const Stretch& stretch : parts) {
      const auto begin = static_cast<std::size_t>(stretch.text.data() - text.data());
      if (!stretch.token) {
        place(stretch.text, begin, placed);
        continue;
      }
      placed.ids.push_back(*stretch.token);
      placed.ends.push_back(begin + stretch.text.size());
    }
    return placed;
  }
  /// Adds text without added tokens. If the text begins with a blank, no blank is put before it.
  void place(std::string_view text, std::size_t begin, Placed& placed) const {
    const bool blank = beside_.prefix.value_or(habits_.prefix) && (begin == 0 || beside_.every) &&
                       !text.starts_with(' ') && !text.starts_with(kSpace);
    const std::string whole = (blank ? " " : "") + std::string(text);
    sentencepiece::ImmutableSentencePieceText pieces;
    check(bare_.Encode(whole, pieces.mutable_proto()));
    for (const auto& piece : pieces.pieces()) {
      placed.ids.push_back(piece.id());
      placed.ends.push_back(begin + (piece.end() > blank ? piece.end() - blank : 0));
    }
  }
  void check(const sentencepiece::util::Status& status) const {
    if (!status.ok()) throw Error(path_, 0, "SentencePiece: " + printable(status.ToString()));
  }
};

}  // namespace

std::unique_ptr<Tokenizer> open_sentencepiece(const std::string& path) {
  try {
    return std::make_unique<SentencePiece>(path);
  } catch (const protozero::exception& error) {
    throw Error(path, 0, std::string("is a damaged SentencePiece model: ") + error.what());
  }
}

}  // namespace zs::token
