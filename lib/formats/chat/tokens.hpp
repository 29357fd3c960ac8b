// SPDX-License-Identifier: Apache-2.0
// Conversations to tokens, and what of them a loss is of.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "chat/template.hpp"
#include "token/cache.hpp"
#include "token/marks.hpp"

namespace zs::chat {

/// What is read how.
struct Chat {
  std::vector<std::string> files{};
  std::string tokenizer{};  ///< its path; its folder has the template
  LossOn loss_on = LossOn::all;
};

/// Tokenises every conversation and hands its ids and marks to `sink`, in order. Of `assistant` a token is trained on
/// that has a byte of what the assistant says. Throws Error, located.
void tokenize(const token::Tokenizer& tokenizer, const Chat& chat, int threads,
              const std::function<void(const std::vector<token::Id>&, const std::vector<token::Mark>&)>& sink);

/// As token::tokenized(), of conversations: token files with their marks beside.
std::vector<token::Tokenized> tokenized(const std::string& path, const std::string& tokenizer, LossOn loss_on,
                                        const std::string& folder, int threads, std::vector<std::string>& left_out);

}  // namespace zs::chat
