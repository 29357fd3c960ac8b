// SPDX-License-Identifier: Apache-2.0
#include "data/windows.hpp"

#include <algorithm>
#include <numeric>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/number.hpp"
#include "base/words.hpp"

namespace zs::data {
namespace {

/// The windows over tokens.
class Cut {
 public:
  Cut(std::shared_ptr<const Tokens> tokens, const Cutting& cutting) : tokens_(std::move(tokens)), cutting_(cutting) {
    const bool joins = cutting.packing == Packing::whole;
    if (joins && !tokens_->marked()) return;
    std::vector<Piece> pieces = joins ? joined() : of_documents();
    if (tokens_->marked()) {
      const auto before = pieces.size();
      std::erase_if(pieces, [&](const Piece& piece) { return targets(piece) == 0; });
      without_target_ = static_cast<std::int64_t>(before - pieces.size());
    }
    if (cutting.packing == Packing::masked) {
      rows_ = pack(std::move(pieces), cutting.length);
    } else {
      rows_.first.resize(pieces.size() + 1);
      std::iota(rows_.first.begin(), rows_.first.end(), 0);
      rows_.pieces = std::move(pieces);
    }
  }

  const Tokens& tokens() const { return *tokens_; }
  const Cutting& cutting() const { return cutting_; }
  std::int64_t documents() const { return documents_; }
  std::int64_t without_target() const { return without_target_; }
  std::int64_t too_long() const { return too_long_; }
  /// Whether some targets of windows stand for none.
  bool pads() const { return !rows_.first.empty(); }
  std::int64_t size() const { return pads() ? std::ssize(rows_.first) - 1 : (tokens_->count() - 1) / cutting_.length; }
  /// The pieces in a window, in order.
  std::vector<Piece> at(std::int64_t window) const {
    if (!pads()) return {{window * cutting_.length, cutting_.length}};
    const auto begin = rows_.pieces.begin();
    const auto i = static_cast<std::size_t>(window);
    return {begin + rows_.first[i], begin + rows_.first[i + 1]};
  }
  std::int64_t targets(std::int64_t window) const {
    std::int64_t sum = 0;
    for (const Piece& piece : at(window)) sum += targets(piece);
    return sum;
  }
  /// Puts a window's tokens and targets behind one another, `samples` having room for them from `place` on.
  void read(std::int64_t window, Samples& samples, std::int64_t place) const {
    std::vector<std::int64_t> both;
    const std::int64_t begin = place, end = begin + cutting_.length;
    for (const Piece& piece : at(window)) {
      both.resize(static_cast<std::size_t>(piece.targets) + 1);
      tokens_->copy(piece.begin, both);
      std::copy(both.begin(), both.end() - 1, samples.tokens.begin() + place);
      std::copy(both.begin() + 1, both.end(), samples.targets.begin() + place);
      const std::vector<token::Mark> marks = this->marks(piece);
      for (std::size_t i = 0; i < marks.size(); ++i) {
        if (!(marks[i] & token::kTrained)) samples.targets[static_cast<std::size_t>(place) + i] = kPadding;
      }
      if (cutting_.packing == Packing::masked) samples.documents.push_back(place);
      place += piece.targets;
    }
    if (pads()) samples.lengths.push_back(place - begin);
    // Padding sees no document, and no document sees it.
    if (cutting_.packing == Packing::masked && place < end) samples.documents.push_back(place);
  }

 private:
  std::shared_ptr<const Tokens> tokens_;
  Cutting cutting_;
  Rows rows_;  // none where windows are joined and every target is trained on
  std::int64_t documents_ = 0, without_target_ = 0, too_long_ = 0;

  /// Marks of the piece's targets.
  std::vector<token::Mark> marks(const Piece& piece) const {
    if (!tokens_->marked()) return {};
    std::vector<token::Mark> marks(static_cast<std::size_t>(piece.targets));
    tokens_->copy_marks(piece.begin + 1, marks);
    return marks;
  }
  std::int64_t targets(const Piece& piece) const {
    if (!tokens_->marked()) return piece.targets;
    return std::ranges::count_if(marks(piece), [](token::Mark mark) { return (mark & token::kTrained) != 0; });
  }

  std::vector<Piece> joined() const {
    std::vector<Piece> pieces;
    for (std::int64_t at = 0; at + cutting_.length < tokens_->count(); at += cutting_.length)
      pieces.push_back({at, cutting_.length});
    return pieces;
  }

  /// A document's pieces, the last of its tokens being the last target.
  void add(std::int64_t begin, std::int64_t end, std::vector<Piece>& pieces) {
    std::int64_t targets = end - begin - 1;
    if (targets < 1) return;
    ++documents_;
    if (targets > cutting_.length) {
      ++too_long_;
      if (cutting_.too_long == TooLong::drop) return;
      if (cutting_.too_long == TooLong::cut) targets = cutting_.length;
    }
    for (std::int64_t at = 0; at < targets; at += cutting_.length)
      pieces.push_back({begin + at, std::min(cutting_.length, targets - at)});
  }

  std::vector<Piece> of_documents() {
    std::vector<Piece> pieces;
    constexpr std::int64_t kPart = 1 << 16;
    std::vector<std::int64_t> part;
    std::vector<token::Mark> marks;
    std::int64_t begin = 0;
    for (std::int64_t first = 0; first < tokens_->count(); first += kPart) {
      part.resize(static_cast<std::size_t>(std::min(kPart, tokens_->count() - first)));
      marks.resize(part.size());
      if (tokens_->marked())
        tokens_->copy_marks(first, marks);
      else
        tokens_->copy(first, part);
      for (std::size_t i = 0; i < part.size(); ++i) {
        const std::int64_t at = first + static_cast<std::int64_t>(i);
        if (tokens_->marked() && (marks[i] & token::kBegins)) {
          add(begin, at, pieces);
          begin = at;
        } else if (!tokens_->marked() && part[i] == cutting_.separator) {
          if (at > begin) add(begin, at + 1, pieces);  // the separator behind it is its last target
          begin = at + 1;
        }
      }
    }
    add(begin, tokens_->count(), pieces);  // what was cut short, and has no separator
    return pieces;
  }
};

class Windows final : public Dataset {
 public:
  Windows(std::shared_ptr<const Cut> cut, std::int64_t first, std::int64_t size)
      : cut_(std::move(cut)), first_(first), size_(size) {}

  std::int64_t size() const override { return size_; }
  std::int64_t first() const override { return first_; }
  bool pads() const override { return cut_->pads(); }
  std::int64_t targets(std::int64_t sample) const override {
    return pads() ? cut_->targets(first_ + sample) : Dataset::targets(sample);
  }
  Samples read(std::span<const Draw> draws) const override {
    const std::int64_t length = cut_->cutting().length;
    const std::size_t numbers = draws.size() * static_cast<std::size_t>(length);
    Samples samples{std::ssize(draws),
                    std::vector<std::int64_t>(numbers, cut_->cutting().separator),
                    {},
                    std::vector<std::int64_t>(numbers, kPadding),
                    {},
                    {}};
    for (std::size_t i = 0; i < draws.size(); ++i)
      cut_->read(first_ + draws[i].sample, samples, static_cast<std::int64_t>(i) * length);
    return samples;
  }

 private:
  std::shared_ptr<const Cut> cut_;
  std::int64_t first_, size_;
};

std::string parts_of_documents(std::int64_t count) {
  return counted(static_cast<std::size_t>(count), "part") + " of documents " + (count == 1 ? "has" : "have");
}

/// Why there are not `least` sequences.
std::string too_few(const Cut& cut, std::int64_t least) {
  const Cutting& cutting = cut.cutting();
  if (!cut.pads())
    return "holds " + to_text(cut.tokens().count()) + " tokens, too few for " +
           counted(static_cast<std::size_t>(least), "sequence") + " of " + to_text(cutting.length) +
           " and a last target, " + to_text(least * cutting.length + 1) + ": name more text or a smaller --seq_length";
  std::string why = "makes " + counted(static_cast<std::size_t>(cut.size()), "sequence") + " of " +
                    to_text(cutting.length) + " tokens, and " + to_text(least) +
                    (least == 1 ? " is needed" : " are needed, including held-out documents") + ": name more text";
  if (cut.without_target() > 0)
    why += "; " + parts_of_documents(cut.without_target()) + " no target, and --loss_on all trains on every token";
  if (cut.too_long() > 0 && cutting.too_long != TooLong::split)
    why += "; " + counted(static_cast<std::size_t>(cut.too_long()), "document") +
           " longer than a sequence: " + "--too_long split trains on all of each";
  return why;
}

std::string percent(double part, double total) { return to_rounded_text(100 * part / total, 2) + " %"; }

/// Says how much is padding, and how much is trained on.
void note_padding(const std::vector<std::shared_ptr<const Cut>>& cuts, Split& split) {
  const Cutting& cutting = cuts.front()->cutting();
  std::int64_t windows = 0, filled = 0, trained = 0, without = 0, too_long = 0;
  for (const auto& cut : cuts) {
    split.documents += cut->documents();
    windows += cut->size();
    without += cut->without_target();
    too_long += cut->too_long();
    for (std::int64_t i = 0; i < cut->size(); ++i) {
      for (const Piece& piece : cut->at(i)) filled += piece.targets;
      trained += cut->targets(i);
    }
  }
  const auto numbers = static_cast<double>(windows * cutting.length);
  if (cutting.packing != Packing::whole)
    split.notes.push_back(std::string("packing ") + name(cutting.packing) + ": " + to_text(split.documents) +
                          " documents in " + to_text(windows) + " sequences of " + to_text(cutting.length) +
                          " tokens, " + percent(numbers - static_cast<double>(filled), numbers) + " of them padding");
  if (too_long > 0) {
    const bool one = too_long == 1;
    const char* const what = cutting.too_long == TooLong::split ? (one ? "goes on in another one, as if it began there"
                                                                       : "go on in another one, as if they began there")
                             : cutting.too_long == TooLong::cut ? (one ? "loses its end" : "lose their ends")
                                                                : (one ? "is left out" : "are left out");
    split.notes.push_back(to_text(too_long) + (one ? " document is" : " documents are") +
                          " longer than a sequence, and " + what + " (--too_long)");
  }
  if (!cuts.front()->tokens().marked()) return;
  split.notes.push_back("the loss is of " + to_text(trained) + " of " + to_text(filled) + " tokens, " +
                        percent(static_cast<double>(trained), static_cast<double>(filled)) +
                        (without == 0 ? "" : "; " + parts_of_documents(without) + " no target, and are left out"));
}

}  // namespace

Split windows(const Parts& parts, const Cutting& cutting, const HeldOut& held_out) {
  std::vector<std::shared_ptr<const Cut>> cuts;
  // Throws where the windows are fewer than `least`.
  const auto cut = [&](const std::shared_ptr<const Tokens>& tokens, std::int64_t least) {
    auto made = std::make_shared<const Cut>(tokens, cutting);
    if (made->size() < least) throw Error(tokens->path(), 0, too_few(*made, least));
    cuts.push_back(made);
    return made;
  };
  const bool cut_validation = !parts.validation, cut_test = !parts.test && held_out.test > 0;
  const auto training_cut = cut(parts.training, 1 + cut_validation + cut_test);
  const std::int64_t windows = training_cut->size();
  const auto held = [&](bool holds, double share) {
    return holds ? std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(windows) * share)) : 0;
  };
  const std::int64_t validation = held(cut_validation, held_out.validation), test = held(cut_test, held_out.test),
                     training = windows - validation - test;
  if (training < 1)
    throw Error(parts.training->path(), 0,
                "leaves nothing to train on: hold out smaller shares for validation and test");
  Split split;
  split.training = std::make_unique<Windows>(training_cut, 0, training);
  split.notes = held_out.without_effect(!cut_validation, parts.test != nullptr);
  split.tokens = parts.training->count();
  std::string sums = "train " + parts.training->sha256() + "\n";
  // A part of its own, or what is held out of training from `first` on.
  const auto make = [&](std::unique_ptr<const Dataset>& part, const char* its_name,
                        const std::shared_ptr<const Tokens>& tokens, std::int64_t first, std::int64_t size) {
    if (!tokens) {
      part = std::make_unique<Windows>(training_cut, first, size);
      return;
    }
    const auto separate = cut(tokens, 1);
    part = std::make_unique<Windows>(separate, 0, separate->size());
    sums += std::string(its_name) + " " + tokens->sha256() + "\n";
    split.tokens += tokens->count();
  };
  make(split.validation, "validation", parts.validation, training, validation);
  if (cut_test || parts.test) make(split.test, "test", parts.test, training + validation, test);
  split.sha256 = parts.validation || parts.test ? zs::sha256(sums) : parts.training->sha256();
  if (!training_cut->pads()) return split;
  constexpr const char* kTooLong[] = {"", ", cut", ", drop"};
  if (cutting.packing != Packing::whole)  // the same tokens, and other samples
    split.sha256 =
        zs::sha256(std::string("packing ") + name(cutting.packing) + ", separator " + to_text(cutting.separator) +
                   kTooLong[static_cast<std::size_t>(cutting.too_long)] + "\n" + split.sha256 + "\n");
  note_padding(cuts, split);
  return split;
}

}  // namespace zs::data
