// SPDX-License-Identifier: Apache-2.0
// A tokenizer's chat template, and conversations as it writes them.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "chat/conversation.hpp"

namespace zs::chat {

/// Which tokens the loss is of: those of the conversation, or those that the assistant says, with the token that ends
/// what it says.
enum class LossOn { all, assistant };

struct Template {
  std::string text;
  std::string place;                          ///< where it stands, for errors
  std::map<std::string, std::string> tokens;  ///< bos_token, eos_token and such, as the template may use them
  std::vector<std::string> special;           ///< contents of special tokens
};

/// Of the folder of a tokenizer: chat_template.jinja, else "chat_template" of tokenizer_config.json (of several the one
/// that is called default). Throws Error where there is none.
Template open_template(const std::string& tokenizer);
/// The files that open_template() looks at: what a cache of tokens depends on.
std::vector<std::string> template_files(const std::string& tokenizer);

/// A conversation as text, and where in it, in bytes, the assistant speaks: [first, second) of each.
struct Rendered {
  std::string text;
  std::vector<std::pair<std::size_t, std::size_t>> said;
};

/// By Jinja2 of Python, with what transformers gives a template. What the assistant says is what stands in blocks of
/// "generation", if the template has them; else what follows the text of the messages before it, with the prompt for
/// the assistant. `file` is where the conversations come from. Throws Error, located: a template that is no Jinja, what
/// it refuses, a turn whose place cannot be told, and where there is no Python with Jinja2.
std::vector<Rendered> render(const Template& by, LossOn loss_on, const std::vector<Conversation>& conversations,
                             const std::string& file);

}  // namespace zs::chat
