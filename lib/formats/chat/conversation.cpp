// SPDX-License-Identifier: Apache-2.0
#include "chat/conversation.hpp"

#include <map>

#include "base/error.hpp"
#include "base/text.hpp"

namespace zs::chat {
namespace {

using Ordered = nlohmann::ordered_json;  // templates see keys in the order of the file

/// The defect of a line.
struct Wrong {
  const token::DocumentReader& lines;
  [[noreturn]] void operator()(const std::string& what) const { throw Error(lines.name(), lines.line(), what); }
};

/// The names of speakers in templates.
std::string role_of(const std::string& from, const std::string& which, const Wrong& wrong) {
  static const std::map<std::string, std::string, std::less<>> kRoles = {
      {"human", "user"},       {"user", "user"},
      {"gpt", "assistant"},    {"assistant", "assistant"},
      {"model", "assistant"},  {"chatgpt", "assistant"},
      {"system", "system"},    {"tool", "tool"},
      {"observation", "tool"}, {"function_response", "tool"}};
  const auto at = kRoles.find(from);
  if (at == kRoles.end())
    wrong(which + ": \"from\" is '" + printable(from) +
          "', which is none of human, user, gpt, assistant, system, tool");
  return at->second;
}

Ordered message_of(const Ordered& given, const std::string& which, bool shared, const Wrong& wrong) {
  if (!given.is_object()) wrong(which + " is not an object");
  const char *const who = shared ? "from" : "role", *const what = shared ? "value" : "content";
  if (!given.contains(who) || !given[who].is_string() || given[who].get_ref<const std::string&>().empty())
    wrong(which + " has no \"" + who + "\"");
  if (shared) {
    if (!given.contains(what) || !given[what].is_string()) wrong(which + " has no \"value\" that is text");
    return {{"role", role_of(given[who], which, wrong)}, {"content", given[what]}};
  }
  const bool calls = given.contains("tool_calls") && !given["tool_calls"].empty();
  if (!calls && (!given.contains(what) || given[what].is_null())) wrong(which + " has no \"content\"");
  if (given.contains(what) && !given[what].is_null() && !given[what].is_string() && !given[what].is_array())
    wrong(which + ": \"content\" is neither text nor a list of parts");
  return given;
}

}  // namespace

bool holds_conversations(const std::string& path) {
  if (path == "-" || !token::names_json_lines(path)) return false;
  token::DocumentReader lines(path, "messages");
  Ordered first;
  if (!lines.next_object(first)) return false;
  return !first.contains("text") && (first.contains("messages") || first.contains("conversations"));
}

bool ConversationReader::next(Conversation& conversation) {
  Ordered line;
  if (!lines_.next_object(line)) return false;
  const Wrong wrong{lines_};
  const bool shared = !line.contains("messages") && line.contains("conversations");
  const char* const key = shared ? "conversations" : "messages";
  if (!line.contains(key)) wrong("has neither \"messages\" nor \"conversations\"");
  const Ordered& list = line[key];
  if (!list.is_array()) wrong(std::string("\"") + key + "\" is not a list");
  if (list.empty()) wrong("the conversation is empty: it has no message");
  // Files of the second key may have messages of the first form.
  const bool of_roles = !shared || (list[0].is_object() && list[0].contains("role"));
  Ordered messages = Ordered::array();
  for (std::size_t i = 0; i < list.size(); ++i)
    messages.push_back(message_of(list[i], "message " + std::to_string(i + 1), !of_roles, wrong));
  conversation.line = lines_.line();
  conversation.asked = {{"messages", std::move(messages)}};
  if (line.contains("tools") && !line["tools"].is_null()) {
    if (!line["tools"].is_array()) wrong("\"tools\" is not a list");
    conversation.asked["tools"] = line["tools"];
  }
  return true;
}

}  // namespace zs::chat
