// SPDX-License-Identifier: Apache-2.0
// Splits a text into words, which are tokenized one by one: the "pre_tokenizer" of a tokenizer.json.
#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "token/expression.hpp"

namespace zs::token {

/// How split treats a match and the text between matches.
enum class Behaviour { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// One step: an expression splits each piece of the text, or a piece gets a leading space if it has none.
struct Step {
  std::vector<Expression> expression{};  ///< one, or none: add a leading space
  Behaviour behaviour = Behaviour::isolated;
  bool invert = false;  ///< exchange matches and the text between them
};

using Steps = std::vector<Step>;
using Sink = std::function<void(std::string_view)>;

/// Applies all steps in order; the state of one thread.
class Splitter {
 public:
  /// REQUIRES: `steps` outlives it.
  explicit Splitter(const Steps& steps);

  /// Passes every piece to `sink`, in order; the view is valid during the call. REQUIRES: text is UTF-8.
  void split(std::string_view text, const Sink& sink) { split(text, 0, sink); }

  /// Splits from `begin`, as if a match ended there, until a match, or the text between matches, ends at `limit` or
  /// later: passes the pieces to `sink` and returns that end. Several threads can so split a text from likely
  /// boundaries; a part is valid if the part before it ended exactly at its beginning. REQUIRES: can_split_in_parts().
  std::size_t split_part(std::string_view text, std::size_t begin, std::size_t limit, const Sink& sink);
  /// Whether the first step's matches do not depend on the text before them.
  bool can_split_in_parts() const;

 private:
  const Steps* steps_;
  std::vector<Expression::Matcher> matchers_;
  std::vector<std::size_t> matcher_;  // for each step

  struct Part {
    std::size_t begin, end;
    bool match;
  };
  void split(std::string_view text, std::size_t step, const Sink& sink);
  std::vector<Part> parts(std::string_view text, std::size_t step);
};

/// The expression of GPT-2.
extern const std::string_view kGpt2Expression;

}  // namespace zs::token
