// SPDX-License-Identifier: Apache-2.0
#include "data/windows.hpp"

#include <algorithm>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/number.hpp"

namespace zs::data {
namespace {

/// Where a sample's inputs begin, and how many of its targets are there; the rest is padding.
struct Window {
  std::int64_t begin, targets;
};

/// The windows over tokens.
class Cut {
 public:
  Cut(std::shared_ptr<const Tokens> tokens, std::int64_t length, std::optional<std::int64_t> separator)
      : tokens_(std::move(tokens)), length_(length), separator_(separator) {
    if (separator) find_documents(*separator);
  }

  std::int64_t size() const {
    return separator_ ? static_cast<std::int64_t>(windows_.size()) : (tokens_->count() - 1) / length_;
  }
  Window at(std::int64_t i) const {
    return separator_ ? windows_[static_cast<std::size_t>(i)] : Window{i * length_, length_};
  }
  const Tokens& tokens() const { return *tokens_; }
  std::int64_t length() const { return length_; }
  const std::optional<std::int64_t>& separator() const { return separator_; }
  std::int64_t documents() const { return documents_; }

 private:
  std::shared_ptr<const Tokens> tokens_;
  std::int64_t length_;
  std::optional<std::int64_t> separator_;
  std::vector<Window> windows_;  // of documents
  std::int64_t documents_ = 0;

  /// The separator behind a document is its last target. Tokens that were cut short have none: then the last token is.
  void add(std::int64_t begin, std::int64_t end, bool separated) {
    const std::int64_t targets = end - begin - !separated;
    if (targets < 1) return;
    ++documents_;
    for (std::int64_t at = 0; at < targets; at += length_)
      windows_.push_back({begin + at, std::min(length_, targets - at)});
  }

  void find_documents(std::int64_t separator) {
    constexpr std::int64_t kPiece = 1 << 16;
    std::vector<std::int64_t> piece;
    std::int64_t begin = 0;
    for (std::int64_t first = 0; first < tokens_->count(); first += kPiece) {
      piece.resize(static_cast<std::size_t>(std::min(kPiece, tokens_->count() - first)));
      tokens_->copy(first, piece);
      for (std::size_t i = 0; i < piece.size(); ++i) {
        if (piece[i] != separator) continue;
        const std::int64_t end = first + static_cast<std::int64_t>(i);
        add(begin, end, true);
        begin = end + 1;
      }
    }
    add(begin, tokens_->count(), false);
  }
};

class Windows final : public Dataset {
 public:
  Windows(std::shared_ptr<const Cut> cut, std::int64_t first, std::int64_t size)
      : cut_(std::move(cut)), first_(first), size_(size) {}

  std::int64_t size() const override { return size_; }
  bool pads() const override { return cut_->separator().has_value(); }
  std::int64_t targets(std::int64_t sample) const override {
    return pads() ? cut_->at(first_ + sample).targets : Dataset::targets(sample);
  }
  Samples read(std::span<const Draw> draws) const override {
    const auto length = static_cast<std::size_t>(cut_->length()), numbers = draws.size() * length;
    Samples samples{static_cast<std::int64_t>(draws.size()),
                    std::vector<std::int64_t>(numbers, cut_->separator().value_or(0)),
                    {},
                    std::vector<std::int64_t>(numbers, kPadding)};
    std::vector<std::int64_t> both;
    for (std::size_t i = 0; i < draws.size(); ++i) {
      const Window window = cut_->at(first_ + draws[i].sample);
      both.resize(static_cast<std::size_t>(window.targets) + 1);
      cut_->tokens().copy(window.begin, both);
      std::copy(both.begin(), both.end() - 1, samples.tokens.begin() + static_cast<std::ptrdiff_t>(i * length));
      std::copy(both.begin() + 1, both.end(), samples.targets.begin() + static_cast<std::ptrdiff_t>(i * length));
    }
    return samples;
  }

 private:
  std::shared_ptr<const Cut> cut_;
  std::int64_t first_, size_;
};

/// Says how much is padding.
void note_padding(const std::vector<std::shared_ptr<const Cut>>& cuts, Split& split) {
  std::int64_t sequences = 0, targets = 0;
  for (const auto& cut : cuts) {
    split.documents += cut->documents();
    sequences += cut->size();
    for (std::int64_t i = 0; i < cut->size(); ++i) targets += cut->at(i).targets;
  }
  const std::int64_t length = cuts.front()->length();
  const double padding = 100 * (1 - static_cast<double>(targets) / static_cast<double>(sequences * length));
  split.notes.push_back("packing none: " + to_text(split.documents) + " documents in " + to_text(sequences) +
                        " sequences of " + to_text(length) + " tokens, " + to_rounded_text(padding, 2) +
                        " % of them padding");
}

}  // namespace

Split windows(const Parts& parts, std::int64_t length, const HeldOut& held_out, std::optional<std::int64_t> separator) {
  std::vector<std::shared_ptr<const Cut>> cuts;
  // Throws where the windows are fewer than `least`.
  const auto cut = [&](const std::shared_ptr<const Tokens>& tokens, std::int64_t least) {
    auto made = std::make_shared<const Cut>(tokens, length, separator);
    if (made->size() < least) {
      throw Error(tokens->path(), 0,
                  separator ? "holds " + to_text(made->documents()) + " documents in " + to_text(made->size()) +
                                  " sequences, too few: name more text"
                            : "holds " + to_text(tokens->count()) + " tokens, too few for sequences of " +
                                  to_text(length) + ": name more text or a smaller --seq_length");
    }
    cuts.push_back(made);
    return made;
  };
  const bool cut_validation = !parts.validation, cut_test = !parts.test && held_out.test > 0;
  const auto own = cut(parts.training, 1 + cut_validation + cut_test);
  const std::int64_t all = own->size();
  const auto held = [&](bool holds, double share) {
    return holds ? std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(all) * share)) : 0;
  };
  const std::int64_t validation = held(cut_validation, held_out.validation), test = held(cut_test, held_out.test),
                     training = all - validation - test;
  if (training < 1)
    throw Error(parts.training->path(), 0,
                "leaves nothing to train on: hold out smaller shares for validation and test");
  Split split;
  split.training = std::make_unique<Windows>(own, 0, training);
  split.tokens = parts.training->count();
  std::string sums = "train " + parts.training->sha256() + "\n";
  // A part of its own, or what is held out of training from `first` on.
  const auto make = [&](std::unique_ptr<const Dataset>& part, const char* name,
                        const std::shared_ptr<const Tokens>& tokens, std::int64_t first, std::int64_t size) {
    if (!tokens) {
      part = std::make_unique<Windows>(own, first, size);
      return;
    }
    const auto its = cut(tokens, 1);
    part = std::make_unique<Windows>(its, 0, its->size());
    sums += std::string(name) + " " + tokens->sha256() + "\n";
    split.tokens += tokens->count();
  };
  make(split.validation, "validation", parts.validation, training, validation);
  if (cut_test || parts.test) make(split.test, "test", parts.test, training + validation, test);
  split.sha256 = parts.validation || parts.test ? zs::sha256(sums) : parts.training->sha256();
  if (!separator) return split;
  // The same tokens, and other samples.
  split.sha256 = zs::sha256("packing none, separator " + to_text(*separator) + "\n" + split.sha256 + "\n");
  note_padding(cuts, split);
  return split;
}

}  // namespace zs::data
