// SPDX-License-Identifier: Apache-2.0
#include "chat/template.hpp"

#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "base/json.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "config/share.hpp"
#include "token/beside.hpp"

namespace zs::chat {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char *kAlone = "chat_template.jinja", *kToolUse = "additional_chat_templates/tool_use.jinja";

fs::path folder_of(const std::string& tokenizer) {
  return is_folder(tokenizer) ? fs::path(tokenizer) : fs::path(tokenizer).parent_path();
}

Json read_object(const fs::path& path) {
  if (!is_there(path)) return Json::object();
  Json json = read_json(path.string());
  if (!json.is_object()) throw Error(path.string(), 0, "is not a JSON object");
  return json;
}

/// Text, or an object with its content; "" for another thing.
std::string content_of(const Json& token) {
  const Json& content = token.is_object() && token.contains("content") ? token["content"] : token;
  return content.is_string() ? content.get<std::string>() : "";
}

/// That of several templates which has the name.
std::optional<Text> called(const std::string& name, const Json& several, const std::string& place) {
  for (const Json& each : several) {
    if (each.is_object() && each.value("name", "") == name && each.contains("template") && each["template"].is_string())
      return Text{each["template"], place};
  }
  return {};
}

void add_texts(const Json& given, const std::string& place, Template& made) {
  if (given.is_array()) {
    const std::optional<Text> usual = called("default", given, place);
    if (!usual) throw Error(place + " has several, none of which is called default");
    made.usual = *usual;
    made.tool_use = called("tool_use", given, place);
  } else if (given.is_string()) {
    made.usual = {given, place};
  } else {
    throw Error(place + " is not text");
  }
}

/// The template of a conversation.
const Text& text_for(const Conversation& conversation, const Template& by) {
  return by.tool_use && conversation.asked.contains("tools") ? *by.tool_use : by.usual;
}

/// Contents of special tokens, from "added_tokens" and "added_tokens_decoder".
void add_special(const Json& tokens, std::vector<std::string>& special) {
  if (!tokens.is_array() && !tokens.is_object()) return;
  for (const Json& token : tokens) {
    if (token.is_object() && token.value("special", false) && !content_of(token).empty())
      special.push_back(content_of(token));
  }
}

/// The program's output, line by line.
std::vector<Json> answers(const Template& by, const std::string& input) {
  const std::string program = config::share_path("chat/render.py");
  Ended ended;
  for (const char* const python : {"python3", "/usr/bin/python3"}) {
    ended = run({.words = {python, "-I", program},
                 .input = [&](std::FILE* to) { std::fwrite(input.data(), 1, input.size(), to); },
                 .captured = true});
    if (ended.status != 3 && ended.status != 127) break;
  }
  if (ended.status == 3 || ended.status == 127)
    throw Error(by.usual.place, 0,
                "is rendered by Jinja2, which no python3 here has: install python3-jinja2, or let PATH begin with a "
                "Python that has it");
  if (ended.status != 0) {
    const std::string last = ended.errors.substr(ended.errors.rfind('\n', ended.errors.size() - 2) + 1);
    throw Error(
        by.usual.place, 0,
        "the program that renders it ended with status " + std::to_string(ended.status) + ": " + printable(last));
  }
  std::vector<Json> answers;
  for (const std::string& line : lines_of(ended.output)) answers.push_back(Json::parse(line));
  return answers;
}

std::string over_limit(const Json& answer) {
  return "the chat template takes more than " + answer["limit"].get<std::string>() + ", the limit for a conversation";
}

Rendered rendered(const Json& answer, const Template& by, const std::string& file, const Conversation& conversation) {
  const auto wrong = [&](const std::string& what) {
    throw Error(file == "-" ? "stdin" : file, conversation.line, what);
  };
  if (answer.contains("refused") && answer["refused"].is_string())
    wrong("the chat template refuses the conversation: " + printable(answer["refused"].get<std::string>()));
  if (answer.contains("refused"))
    wrong("message " + answer["turn"].dump() +
          ": what of the text the assistant says cannot be told, since the template does not write it, or writes it "
          "otherwise when more follows: give " +
          text_for(conversation, by).place + " {% generation %} blocks, or use --loss_on all");
  if (answer.contains("limit")) wrong(over_limit(answer));
  if (answer.contains("failed")) wrong("the chat template fails: " + printable(answer["failed"].get<std::string>()));
  Rendered made{answer.at("text"), {}};
  for (const Json& span : answer.at("spans")) made.said.emplace_back(span.at(0), span.at(1));
  return made;
}

}  // namespace

std::vector<std::string> template_files(const std::string& tokenizer) {
  std::vector<std::string> names = token::kBesideFiles, files;
  names.insert(names.end(), {kAlone, kToolUse, "tokenizer.json"});
  for (const std::string& name : names) {
    const fs::path path = folder_of(tokenizer) / name;
    if (is_there(path)) files.push_back(path.string());
  }
  return files;
}

Template open_template(const std::string& tokenizer) {
  const fs::path folder = folder_of(tokenizer), alone = folder / kAlone, tool_use = folder / kToolUse,
                 config = folder / "tokenizer_config.json";
  const Json json = read_object(config);
  Template made;
  const auto text_in = [](const fs::path& path) { return Text{Input(path.string()).read_all(), path.string()}; };
  if (is_there(alone)) {
    made.usual = text_in(alone);
    if (is_there(tool_use)) made.tool_use = text_in(tool_use);
  } else if (json.contains("chat_template") && !json["chat_template"].is_null()) {
    add_texts(json["chat_template"], config.string() + ": chat_template", made);
  } else {
    throw Error(tokenizer, 0,
                "has no chat template: expected chat_template.jinja or \"chat_template\" in tokenizer_config.json");
  }
  made.tokens = token::named_tokens(folder.string());
  for (const auto& [name, content] : made.tokens) made.special.push_back(content);
  if (json.contains("added_tokens_decoder")) add_special(json["added_tokens_decoder"], made.special);
  if (const Json file = read_object(folder / "tokenizer.json"); file.contains("added_tokens"))
    add_special(file["added_tokens"], made.special);
  return made;
}

std::vector<Rendered> render(const Template& by, LossOn loss_on, const std::vector<Conversation>& conversations,
                             const std::string& file) {
  std::string input = Json{{"template", by.usual.text},
                           {"tool_use", by.tool_use ? Json(by.tool_use->text) : Json()},
                           {"tokens", by.tokens},
                           {"special", by.special},
                           {"loss_on", loss_on == LossOn::all ? "all" : "assistant"}}
                          .dump() +
                      "\n";
  for (const Conversation& conversation : conversations) input += conversation.asked.dump() + "\n";
  const std::vector<Json> replies = answers(by, input);
  if (replies.at(0).contains("syntax")) {
    throw Error(replies[0].value("of", "") == "tool_use" ? by.tool_use->place : by.usual.place,
                replies[0]["line"].get<std::int64_t>(),
                "is not a Jinja template: " + printable(replies[0]["syntax"].get<std::string>()));
  }
  if (replies[0].contains("limit")) throw Error(by.usual.place, 0, over_limit(replies[0]));
  std::vector<Rendered> made;
  for (std::size_t i = 0; i < conversations.size(); ++i)
    made.push_back(rendered(replies.at(i + 1), by, file, conversations[i]));
  return made;
}

}  // namespace zs::chat
