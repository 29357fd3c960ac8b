// SPDX-License-Identifier: Apache-2.0
#include "token/expression.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <fmt/format.h>
#include <array>

#include "base/error.hpp"
#include "base/text.hpp"
#include "token/unicode.hpp"

namespace zs::token {
namespace {

std::string text_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

pcre2_code* code_of(const std::shared_ptr<void>& code) { return static_cast<pcre2_code*>(code.get()); }

std::string escaped(std::string_view text) {
  std::string expression;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x80 && !std::isalnum(static_cast<unsigned char>(c))) expression += '\\';
    expression += c;
  }
  return expression;
}

}  // namespace

Expression::Expression(std::string_view written, const std::string& place) : place_(place) {
  const std::string pattern = to_pcre2(written, place);
  int code = 0;
  std::size_t at = 0;
  const std::shared_ptr<pcre2_compile_context> context(pcre2_compile_context_create(nullptr),
                                                       pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  code_ = std::shared_ptr<void>(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                              PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &code, &at, context.get()),
                                [](void* made) { pcre2_code_free(static_cast<pcre2_code*>(made)); });
  if (!code_) throw Error(place + ": '" + std::string(written) + "' is not a regular expression: " + text_of(code));
  std::uint32_t empty = 0;
  pcre2_pattern_info(code_of(code_), PCRE2_INFO_MATCHEMPTY, &empty);
  if (empty != 0)
    throw Error(place + ": '" + std::string(written) + "' may match nothing at all, which splits nothing");
  compiled_ = pcre2_jit_compile(code_of(code_), PCRE2_JIT_COMPLETE) == 0;
}

Expression Expression::literal(std::string_view text, const std::string& place) { return {escaped(text), place}; }

Expression::Matcher::Matcher(const Expression& expression)
    : expression_(&expression),
      data_(pcre2_match_data_create_from_pattern(code_of(expression.code_), nullptr),
            [](void* made) { pcre2_match_data_free(static_cast<pcre2_match_data*>(made)); }),
      context_(pcre2_match_context_create(nullptr),
               [](void* made) { pcre2_match_context_free(static_cast<pcre2_match_context*>(made)); }) {
  if (!data_ || !context_) throw std::bad_alloc();
  if (!expression.compiled_) return;
  auto* const stack = pcre2_jit_stack_create(1 << 15, 1 << 26, nullptr);
  if (!stack) throw std::bad_alloc();
  pcre2_jit_stack_assign(static_cast<pcre2_match_context*>(context_.get()), nullptr, stack);
  data_ = std::shared_ptr<void>(data_.get(), [kept = data_, stack](void*) { pcre2_jit_stack_free(stack); });
}

Expression::Match Expression::Matcher::next(std::string_view text, std::size_t from) {
  auto* const data = static_cast<pcre2_match_data*>(data_.get());
  const auto match = expression_->compiled_ ? pcre2_jit_match : pcre2_match;
  const int code = match(code_of(expression_->code_), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                         PCRE2_NO_UTF_CHECK, data, static_cast<pcre2_match_context*>(context_.get()));
  if (code == PCRE2_ERROR_NOMATCH) return {text.size(), text.size()};
  if (code < 0) {
    throw Error(expression_->place_ + ": cannot be matched at byte " + std::to_string(from) +
                " of a text: " + text_of(code));
  }
  const std::size_t* const at = pcre2_get_ovector_pointer(data);
  return {at[0], at[1]};
}

// Converts Oniguruma's syntax to PCRE2's. Syntax with the same meaning is copied, syntax with another meaning is
// rewritten, and everything else is an error. So no expression has another meaning here than in the tokenizer's
// program.

namespace {

std::string ranges(const std::vector<Range>& spans) {
  std::string text;
  for (const auto& [first, last] : spans) {
    text += fmt::format("\\x{{{:X}}}", static_cast<unsigned>(first));
    if (last != first) text += fmt::format("-\\x{{{:X}}}", static_cast<unsigned>(last));
  }
  return text;
}

class Translation {
 public:
  Translation(std::string_view written, const std::string& place) : written_(written), place_(place) {}

  std::string run() {
    while (at_ < written_.size()) step();
    if (in_class_) unknown("a '[' without its ']'");
    return out_;
  }

 private:
  std::string_view written_;
  const std::string& place_;
  std::size_t at_ = 0;
  bool in_class_ = false;
  std::string out_;

  [[noreturn]] void unknown(const std::string& what) const {
    throw Error(place_ + ": '" + printable(written_) + "': " + what + " is not known to zs");
  }
  std::string_view rest() const { return written_.substr(at_); }
  bool take(std::string_view text) {
    if (!rest().starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  void copy(std::size_t size) {
    out_ += written_.substr(at_, size);
    at_ += size;
  }

  void step() {
    const char c = written_[at_];
    if (c == '\\') return escape();
    if (in_class_) return member(c);
    if (c == '[') return open_class();
    if (c == '(') return group();
    if (c == '{') return interval();
    if (c == '^' || c == '$') unknown(std::string("'") + c + "'");
    copy(1);
  }

  void open_class() {
    in_class_ = true;
    copy(1);
    if (at_ < written_.size() && written_[at_] == '^') copy(1);
    if (rest().starts_with("]")) unknown("']' at the front of a class");
  }

  void member(char c) {
    if (c == '[') unknown("a class within a class");
    if (rest().starts_with("&&")) unknown("'&&' in a class");
    if (c == ']') in_class_ = false;
    copy(1);
  }

  void group() {
    static constexpr std::array<std::string_view, 7> kKnown = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"};
    for (const std::string_view opening : kKnown) {
      if (rest().starts_with(opening)) return copy(opening.size());
    }
    if (rest().starts_with("(?")) unknown("'" + std::string(rest().substr(0, 4)) + "'");
    copy(1);
  }

  // {n}, {n,}, {n,m}: alike. {,m} and what follows with '+' are not.
  void interval() {
    const std::size_t end = rest().find('}');
    const std::string_view inside = end == std::string_view::npos ? "" : rest().substr(1, end - 1);
    if (inside.empty() || inside.front() == ',' || inside.find_first_not_of("0123456789,") != std::string_view::npos)
      unknown("a '{' that begins no {n}, {n,} or {n,m}");
    copy(end + 1);
    if (rest().starts_with("+")) unknown("'+' after '}'");
  }

  // A set of characters: what is in it by PCRE2's name, and what PCRE2 lacks.
  void set(const std::string& name, const std::string& more, bool negated) {
    if (!in_class_) {
      out_ += (negated ? "[^" : "[") + name + more + "]";
    } else if (negated && !more.empty()) {
      unknown("a negated set in a class");
    } else {
      out_ += negated ? "\\P" + name.substr(2) : name + more;
    }
  }

  void property() {
    bool negated = written_[at_ + 1] == 'P';
    at_ += 2;
    std::string name;
    if (take("{")) {
      if (take("^")) negated = !negated;
      const std::size_t end = rest().find('}');
      if (end == std::string_view::npos) unknown("'\\p{' without its '}'");
      name = rest().substr(0, end);
      at_ += end + 1;
    }
    static constexpr std::string_view kCategories =
        " L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp ";
    if (name.empty() || kCategories.find(" " + name + " ") == std::string_view::npos)
      unknown("the property '" + name + "'");
    set("\\p{" + name + "}", ranges(newer(name)), negated);
  }

  void escape() {
    if (at_ + 1 >= written_.size()) unknown("a '\\' at the end");
    const char c = written_[at_ + 1];
    if (c == 'p' || c == 'P') return property();
    if (c == 's' || c == 'S' || c == 'd' || c == 'D') {
      at_ += 2;
      if (c == 's' || (c == 'S' && !in_class_)) return set("", ranges(white_space()), c == 'S');
      // PCRE2 takes U+180E for white space, so it is not in its \S.
      if (c == 'S') return void(out_ += "\\S\\x{180E}");
      return set("\\p{Nd}", ranges(newer("Nd")), c == 'D');
    }
    if (c == 'x' || c == 'u') return number(c == 'x' ? 2 : 4);
    if (c == 'v') {
      at_ += 2;
      return void(out_ += "\\x{B}");
    }
    const bool word = std::isalnum(static_cast<unsigned char>(c));
    if (static_cast<unsigned char>(c) >= 0x80 || (word && std::string_view("rntfae").find(c) == std::string_view::npos))
      unknown("'" + std::string(rest().substr(0, 2)) + "'");
    copy(2);
  }

  // \xHH, \x{H...}, \uHHHH
  void number(std::size_t digits) {
    at_ += 2;
    const bool braces = digits == 2 && take("{");
    if (braces) digits = std::min(rest().find('}'), rest().size());
    const std::string_view hex = rest().substr(0, digits);
    const bool right = hex.size() == digits && !hex.empty() && hex.size() <= 6 &&
                       hex.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
    if (!right || (!braces && digits == 2 && hex[0] >= '8')) unknown("an escape of a number");  // \x80: a byte there
    out_ += "\\x{" + std::string(hex) + "}";
    at_ += digits;
    if (braces && !take("}")) unknown("an escape of a number");
  }
};

}  // namespace

std::string to_pcre2(std::string_view written, const std::string& place) { return Translation(written, place).run(); }

}  // namespace zs::token
