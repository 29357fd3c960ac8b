// SPDX-License-Identifier: Apache-2.0
// Tokenizes conversations and marks the tokens that the loss counts.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "chat/template.hpp"
#include "token/cache.hpp"
#include "token/marks.hpp"

namespace zs::chat {

/// The input, and how to read it.
struct Chat {
  std::vector<std::string> files{};
  std::string tokenizer{};  ///< its path; the template is in its folder
  LossOn loss_on = LossOn::all;
};

/// Tokenizes every conversation and passes its ids and marks to `sink`, in order. With LossOn::assistant a token is
/// trained on if at least one of its bytes is said by the assistant. Throws Error, located.
void tokenize(const token::Tokenizer& tokenizer, const Chat& chat, int threads,
              const std::function<void(const std::vector<token::Id>&, const std::vector<token::Mark>&)>& sink);

/// Like token::tokenized(), for conversations: token files with a file of marks for each.
std::vector<token::Tokenized> tokenized(const std::string& path, const std::string& tokenizer, LossOn loss_on,
                                        const std::string& folder, int threads, std::vector<std::string>& left_out);

}  // namespace zs::chat
