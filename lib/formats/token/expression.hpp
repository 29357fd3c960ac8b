// SPDX-License-Identifier: Apache-2.0
// The regular expressions of tokenizers: written for Oniguruma (Ruby's syntax), matched by PCRE2, with the same result.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace zs::token {

class Expression {
 public:
  /// Throws Error, "PLACE: what", at what is no expression, at what the two syntaxes take differently and this does not
  /// translate, and at an expression that matches nothing at all ("a*"). `place` is kept for later errors.
  Expression(std::string_view written, const std::string& place);
  /// One that matches `text` as it stands.
  static Expression literal(std::string_view text, const std::string& place);

  struct Match {
    std::size_t begin = 0, end = 0;
  };

  /// What one thread needs to match with an expression; it may outlive none of it.
  class Matcher {
   public:
    explicit Matcher(const Expression& expression);
    /// The first match that begins at `from` or later: what it is depends on the text and on `from` alone. Where there
    /// is none, {text.size(), text.size()}. REQUIRES: text is UTF-8, `from` stands at a character.
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
