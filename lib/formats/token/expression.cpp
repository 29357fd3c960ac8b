// SPDX-License-Identifier: Apache-2.0
#include "token/expression.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

#include "base/error.hpp"

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

}  // namespace zs::token
