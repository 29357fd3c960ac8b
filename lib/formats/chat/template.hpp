// SPDX-License-Identifier: Apache-2.0
// A tokenizer's chat template, and the text it renders from conversations.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chat/conversation.hpp"

namespace zs::chat {

/// The tokens that the loss counts: all of the conversation, or only the assistant's with the token that ends its
/// message.
enum class LossOn { all, assistant };

/// A template's text, and its file and key for errors.
struct Text {
  std::string text{};
  std::string place{};
};

struct Template {
  Text usual;
  std::optional<Text> tool_use;               ///< for conversations with tools, if there is another one for them
  std::map<std::string, std::string> tokens;  ///< bos_token, eos_token and so on, as variables of the template
  std::vector<std::string> special;           ///< contents of special tokens
};

/// Reads it from a tokenizer's folder: chat_template.jinja with additional_chat_templates/tool_use.jinja, else
/// "chat_template" of tokenizer_config.json (of several, those called default and tool_use). Throws Error if there is
/// none.
Template open_template(const std::string& tokenizer);
/// The files that open_template() reads: a cache of tokens depends on them.
std::vector<std::string> template_files(const std::string& tokenizer);

/// A conversation as text, and the byte ranges [first, second) that the assistant says.
struct Rendered {
  std::string text;
  std::vector<std::pair<std::size_t, std::size_t>> said;
};

/// Renders with Python's Jinja2 and the variables and functions that transformers provides. The assistant's text is the
/// part that the template encloses in "generation" blocks; without them, the part after the rendered messages before it
/// and the generation prompt. `file` is the source of the conversations. Throws Error, located, if the template is not
/// valid Jinja or raises an exception, if the place of a turn is ambiguous, and if there is no Python with Jinja2.
std::vector<Rendered> render(const Template& by, LossOn loss_on, const std::vector<Conversation>& conversations,
                             const std::string& file);

}  // namespace zs::chat
