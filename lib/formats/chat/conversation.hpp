// SPDX-License-Identifier: Apache-2.0
// Conversations of users with an assistant, one per line of a JSON Lines file.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "token/document.hpp"

namespace zs::chat {

struct Conversation {
  std::int64_t line = 0;
  /// {"messages": [{"role", "content", ...}, ...], "tools": [...]}, the input of chat templates.
  nlohmann::ordered_json asked;
};

/// Whether a file holds conversations: its first line has "messages" or "conversations", and no "text".
bool holds_conversations(const std::string& path);

/// Reads the conversations of a file, or of stdin for "-". Messages are {"role", "content"}, or in ShareGPT's form
/// {"from", "value"}, in which human, gpt, tool_call and similar names become user, assistant, tool.
class ConversationReader {
 public:
  explicit ConversationReader(const std::string& path) : lines_(path, "messages") {}
  /// Reads the next one; false at the end. Throws Error with file and line if it is malformed.
  bool next(Conversation& conversation);

 private:
  token::DocumentReader lines_;
};

}  // namespace zs::chat
