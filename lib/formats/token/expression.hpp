// SPDX-License-Identifier: Apache-2.0
// Regular expressions of tokenizers: written for Oniguruma (Ruby's syntax), matched by PCRE2 with the same result.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace zs::token {

class Expression {
 public:
  /// Throws Error, "PLACE: what", if the expression is invalid, if the two syntaxes differ in a way that is not
  /// translated, and if it can match the empty text ("a*"). `place` is kept for later errors.
  Expression(std::string_view written, const std::string& place);
  /// An expression that matches `text` literally.
  static Expression literal(std::string_view text, const std::string& place);

  struct Match {
    std::size_t begin = 0, end = 0;
  };

  /// The state of one thread for matching; the expression must outlive it.
  class Matcher {
   public:
    explicit Matcher(const Expression& expression);
    /// The first match that begins at `from` or later; depends only on the text and on `from`. Without a match,
    /// {text.size(), text.size()}. REQUIRES: text is UTF-8, `from` is at a character.
    Match next(std::string_view text, std::size_t from);

   private:
    const Expression* expression_;
    std::shared_ptr<void> data_, context_;
  };

 private:
  std::string place_;
  std::shared_ptr<void> code_;
  bool compiled_ = false;  // to machine code
};

/// The expression in PCRE2's syntax. Throws Error as the constructor of Expression.
std::string to_pcre2(std::string_view written, const std::string& place);

}  // namespace zs::token
