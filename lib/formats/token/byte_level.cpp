// SPDX-License-Identifier: Apache-2.0
#include "token/byte_level.hpp"

#include <algorithm>
#include <bit>
#include <deque>

#include "base/error.hpp"
#include "token/tokenize.hpp"
#include "token/unicode.hpp"

namespace zs::token {
namespace {

bool stands_for_itself(int byte) { return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174; }

/// The code point for each byte: printable ones represent themselves, the others start at U+0100, in order.
const std::array<char32_t, 256>& letters() {
  static const std::array<char32_t, 256> by_byte = [] {
    std::array<char32_t, 256> made{};
    char32_t next = 256;
    for (int byte = 0; byte < 256; ++byte)
      made[static_cast<std::size_t>(byte)] = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
    return made;
  }();
  return by_byte;
}

/// A part of a stretch of text, for one thread.
struct Part {
  std::string_view text;  // the stretch
  std::size_t stretch;    // its number, of all texts
  std::size_t begin, limit, end;
  std::vector<Id> ids;
};

/// A position near `at` where words probably end: at a blank or a full stop after a letter.
std::size_t likely_border(std::string_view text, std::size_t at) {
  constexpr std::size_t kFar = 1 << 16;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (std::size_t i = at; i < std::min(at + kFar, text.size()); ++i) {
    const bool letter = byte(i - 1) >= 0x80 || std::isalpha(byte(i - 1));
    if (letter && (text[i] == ' ' || text[i] == '\n' || text.substr(i).starts_with("\u3002") ||
                   text.substr(i).starts_with("\uFF0C")))
      return i;
  }
  while (at < text.size() && (byte(at) & 0xC0) == 0x80) ++at;
  return at;
}

class ByteLevel : public Tokenizer {
 public:
  explicit ByteLevel(ByteLevelParts parts)
      : vocabulary_(std::move(parts.vocabulary)),
        bpe_(std::move(parts.bpe)),
        steps_(std::move(parts.steps)),
        composes_(parts.composes),
        added_(parts.added),
        normalized_(contents_composed(parts)) {
    for (const auto& [token, id] : vocabulary_) text_of(id) = bytes_of(token).value_or(token);
    for (const auto* tokens : {&parts.added, &parts.normalized}) {
      for (const AddedToken& token : *tokens) {
        text_of(token.id) = token.content;
        vocabulary_[token.content] = token.id;
      }
    }
    end_ = end_by(parts);
  }

  std::vector<std::vector<Id>> encode(const std::vector<std::string_view>& texts, int threads) const override;
  std::vector<Placed> encode_chat(const std::vector<std::string_view>& texts, int threads) const override {
    std::vector<std::vector<Id>> ids = encode(texts, threads);
    std::vector<Placed> placed(texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      placed[i].ends = ends_of(ids[i], texts[i]);
      placed[i].ids = std::move(ids[i]);
    }
    return placed;
  }
  std::string normalized(std::string_view text) const override {
    std::deque<std::string> rooms(1);
    std::string made;
    for (const Stretch& stretch : stretches(as_utf8(text, rooms.front()), rooms)) made += stretch.text;
    return made;
  }
  std::string decode(const std::vector<Id>& ids) const override {
    std::string text;
    for (const Id id : ids) text += texts_.at(id);
    return text;
  }
  Id size() const override { return static_cast<Id>(texts_.size()); }
  std::optional<Id> find(const std::string& token) const override {
    const auto at = vocabulary_.find(token);
    return at == vocabulary_.end() ? std::nullopt : std::optional(at->second);
  }
  std::optional<Id> end_of_text() const override { return end_; }

 private:
  std::unordered_map<std::string, Id> vocabulary_;
  Bpe bpe_;
  Steps steps_;
  bool composes_;
  AddedTokens added_, normalized_;
  std::vector<std::string> texts_;  // by id
  std::optional<Id> end_;

  /// By the given content; else by the usual ones, if the tokenizer has exactly one of them as an added token.
  std::optional<Id> end_by(const ByteLevelParts& parts) const {
    if (!parts.end.empty()) return find(parts.end);
    std::vector<Id> usual;
    for (const auto* tokens : {&parts.added, &parts.normalized}) {
      for (const AddedToken& token : *tokens) {
        if (token.content == "<|endoftext|>" || token.content == "<|end_of_text|>" || token.content == "</s>")
          usual.push_back(token.id);
      }
    }
    return usual.size() == 1 ? std::optional(usual.front()) : std::nullopt;
  }
  std::string& text_of(Id id) {
    if (id >= texts_.size()) texts_.resize(id + 1);
    return texts_[id];
  }
  /// What is found in composed text is composed, too.
  static std::vector<AddedToken> contents_composed(const ByteLevelParts& parts) {
    std::vector<AddedToken> tokens = parts.normalized;
    for (AddedToken& token : tokens) {
      std::string room;
      if (parts.composes) token.content = std::string(composed(token.content, room));
    }
    return tokens;
  }
  /// `rooms` holds normalized copies of parts of the text.
  std::vector<Stretch> stretches(std::string_view text, std::deque<std::string>& rooms) const {
    std::vector<Stretch> first, parts;
    added_.find(text, first);
    for (const Stretch& stretch : first) {
      if (stretch.token)
        parts.push_back(stretch);
      else
        normalized_.find(composes_ ? composed(stretch.text, rooms.emplace_back()) : stretch.text, parts);
    }
    return parts;
  }
  /// Where the ids of a text end in it: an added token has the blanks that it takes with it.
  std::vector<std::size_t> ends_of(const std::vector<Id>& ids, std::string_view text) const {
    std::deque<std::string> rooms(1);
    std::vector<std::size_t> ends;
    std::size_t end = 0;
    for (const Stretch& stretch : stretches(as_utf8(text, rooms.front()), rooms)) {
      std::string_view rest = stretch.text;
      while (!rest.empty() && ends.size() < ids.size() &&
             (stretch.token || rest.starts_with(texts_.at(ids[ends.size()])))) {
        const std::size_t size = stretch.token ? rest.size() : texts_[ids[ends.size()]].size();
        rest.remove_prefix(size);
        ends.push_back(end += size);
      }
      if (!rest.empty()) break;
    }
    if (ends.size() != ids.size() || end != text.size())
      throw Error("has tokens that are not the text byte by byte, as chat needs it");
    return ends;
  }
  void encode_part(Part& part, Splitter& splitter, CachedBpe& bpe) const {
    const Sink word = [&](std::string_view piece) { bpe.encode(piece, part.ids); };
    part.ids.clear();
    if (splitter.can_split_in_parts()) {
      part.end = splitter.split_part(part.text, part.begin, part.limit, word);
    } else {
      splitter.split(part.text, word);
      part.end = part.limit;
    }
  }
  void add_parts(std::string_view text, std::size_t stretch, std::vector<Part>& parts) const {
    constexpr std::size_t kPart = 1 << 18;
    const bool whole = !Splitter(steps_).can_split_in_parts();
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t limit =
          whole || begin + kPart >= text.size() ? text.size() : likely_border(text, begin + kPart);
      parts.push_back({text, stretch, begin, limit, limit, {}});
      begin = limit;
    }
  }
};

std::vector<std::vector<Id>> ByteLevel::encode(const std::vector<std::string_view>& texts, int threads) const {
  struct Document {
    std::deque<std::string> rooms = std::deque<std::string>(1);  // the first is used if the text is not UTF-8
    std::vector<Stretch> stretches;
  };
  std::vector<Document> documents(texts.size());
  share(texts.size(), threads, [&](const Take& take) {
    for (std::size_t i = 0; take(i);)
      documents[i].stretches = stretches(as_utf8(texts[i], documents[i].rooms.front()), documents[i].rooms);
  });
  std::vector<Part> parts;
  std::size_t bytes = 0, stretch_number = 0;
  for (const Document& document : documents) {
    for (const Stretch& stretch : document.stretches) {
      if (!stretch.token) add_parts(stretch.text, stretch_number++, parts);
      bytes += stretch.text.size();
    }
  }
  // One line for each word to remember, up to the size of the processor's cache.
  const std::size_t lines = std::bit_ceil(std::clamp<std::size_t>(bytes / 8, 64, 1 << 16));
  share(parts.size(), threads, [&](const Take& take) {
    Splitter splitter(steps_);
    CachedBpe bpe(bpe_, lines);
    for (std::size_t i = 0; take(i);) encode_part(parts[i], splitter, bpe);
  });

  // A part is valid if the one before it ended at its beginning. Else its beginning was a wrong guess, which costs
  // time.
  std::vector<std::vector<Id>> ids(texts.size());
  Splitter splitter(steps_);
  CachedBpe bpe(bpe_, 64);
  std::size_t part = 0, number = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (const Stretch& stretch : documents[i].stretches) {
      if (stretch.token) {
        ids[i].push_back(*stretch.token);
        continue;
      }
      for (std::size_t at = 0; part < parts.size() && parts[part].stretch == number; at = parts[part++].end) {
        if (parts[part].begin != at) {
          parts[part].begin = at;
          encode_part(parts[part], splitter, bpe);
        }
        ids[i].insert(ids[i].end(), parts[part].ids.begin(), parts[part].ids.end());
        parts[part].ids = {};
      }
      ++number;
    }
  }
  return ids;
}

}  // namespace

std::unique_ptr<Tokenizer> byte_level(ByteLevelParts parts) { return std::make_unique<ByteLevel>(std::move(parts)); }

std::optional<std::string> bytes_of(std::string_view token) {
  static const std::unordered_map<char32_t, char> bytes = [] {
    std::unordered_map<char32_t, char> made;
    for (std::size_t byte = 0; byte < 256; ++byte) made[letters()[byte]] = static_cast<char>(byte);
    return made;
  }();
  std::string text;
  while (!token.empty()) {
    const auto byte = bytes.find(front(token));
    if (byte == bytes.end()) return {};
    text += byte->second;
    token.remove_prefix(byte->first < 0x80 ? 1 : 2);
  }
  return text;
}

std::string letter_of(unsigned char byte) {
  const char32_t letter = letters()[byte];
  if (letter < 0x80) return {static_cast<char>(letter)};
  return {static_cast<char>(0xC0 | letter >> 6), static_cast<char>(0x80 | (letter & 0x3F))};
}

}  // namespace zs::token
