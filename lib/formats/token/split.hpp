// SPDX-License-Identifier: Apache-2.0
// How a text is cut into the words that a tokenizer then looks at one by one: the "pre_tokenizer" of a tokenizer.json.
#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "token/expression.hpp"

namespace zs::token {

/// What becomes of a match and of what stands between matches.
enum class Behaviour { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// One step: each piece of the text is cut by an expression, or gets a space in front where it has none.
struct Step {
  std::vector<Expression> expression{};  ///< one, or none: a space in front
  Behaviour behaviour = Behaviour::isolated;
  bool invert = false;  ///< what is between matches counts as a match, and a match as what is between
};

using Steps = std::vector<Step>;
using Sink = std::function<void(std::string_view)>;

/// Cuts pieces by all steps, one after another; what one thread needs for it.
class Splitter {
 public:
  /// REQUIRES: `steps` outlives it.
  explicit Splitter(const Steps& steps);

  /// Hands every piece to `sink`, in order; the view ends with the call. REQUIRES: text is UTF-8.
  void split(std::string_view text, const Sink& sink) { split(text, 0, sink); }

  /// Of the text, from `begin` on, as if a match ended there, up to where the first match or what is between ends at
  /// `limit` or later: hands the pieces to `sink` and returns that place. A text may so be split in parts, from places
  /// where such an end is likely; a part counts if the part before it ended where it begins.
  /// REQUIRES: can_split_in_parts().
  std::size_t split_part(std::string_view text, std::size_t begin, std::size_t limit, const Sink& sink);
  /// Whether the first step cuts at a place whatever stands before.
  bool can_split_in_parts() const;

 private:
  const Steps* steps_;
  std::vector<Expression::Matcher> matchers_;
  std::vector<std::size_t> matcher_;  // of each step

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
