// SPDX-License-Identifier: Apache-2.0
// Conversations: what people and an assistant said, one in each line of a file of JSON Lines.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "token/document.hpp"

namespace zs::chat {

struct Conversation {
  std::int64_t line = 0;
  /// {"messages": [{"role", "content", ...}, ...], "tools": [...]}, as chat templates have it.
  nlohmann::ordered_json asked;
};

/// Whether the lines of a file hold conversations: the first has "messages" or "conversations", and no "text".
bool holds_conversations(const std::string& path);

/// The conversations of a file, or of stdin for "-". Messages are {"role", "content"}, or as ShareGPT has them
/// {"from", "value"}, in which human, gpt, tool_call and such are user, assistant, tool.
class ConversationReader {
 public:
  explicit ConversationReader(const std::string& path) : lines_(path, "messages") {}
  /// The next one; false at the end. Throws Error with file and line at what is none.
  bool next(Conversation& conversation);

 private:
  token::DocumentReader lines_;
};

}  // namespace zs::chat
