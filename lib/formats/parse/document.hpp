// SPDX-License-Identifier: Apache-2.0
// A log that is one JSON document: the Trainer's trainer_state.json, Megatron-LM's golden values, a Keras history, a
// table written by pandas.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parse/dialect.hpp"

namespace zs::parse {

/// Between the name of a run and a column of it, in a table of several runs.
inline constexpr std::string_view kSeries = " - ";

/// The methods of a document with their results, {"zero2": {"train_losses": [2.3, ...], ...}, ...}, each a run;
/// empty for any other text.
std::vector<std::string> methods_of(std::string_view document);

class Document {
 public:
  /// Takes the next line of the log; true while it belongs to a document that has begun and not ended. A line that is a
  /// document of its own is kept, too, unless another follows it.
  bool add(std::string_view line, std::int64_t number);
  /// Whether more lines are needed.
  bool open() const { return state_ == State::open; }
  /// The lines are read otherwise.
  void forget();
  /// Emits the records of the document, if the log was one, and the document has a table of numbers by steps.
  void finish(Emitter& emitter);

 private:
  enum class State { before, open, whole, none };
  bool scan(std::string_view line);

  State state_ = State::before;
  std::string text_;
  std::vector<std::pair<std::size_t, std::int64_t>> lines_;  // where each begins in text_, and its number
  int depth_ = 0;
  bool quoted_ = false;
};

}  // namespace zs::parse
