// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "chat/conversation.hpp"
#include "chat/template.hpp"

namespace zs::chat {
namespace {

/// The first conversation of a file with these lines, or the error.
std::string first_of(const std::string& lines) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("a.jsonl")) << lines;
  try {
    ConversationReader reader(folder.file("a.jsonl"));
    Conversation conversation;
    return reader.next(conversation) ? conversation.asked.dump() : "none";
  } catch (const Error& error) {
    return std::string(error.what()).substr(folder.path().size() + 1);
  }
}

TEST_CASE("chat: messages keep their form, and ShareGPT's get the names of templates") {
  CHECK(first_of(R"({"messages": [{"role": "user", "content": "hi", "name": "me"}], "tools": null})") ==
        R"({"messages":[{"role":"user","content":"hi","name":"me"}]})");
  CHECK(first_of(R"({"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "yes"}, )"
                 R"({"from": "observation", "value": "1"}], "tools": [{"a": 1}]})") ==
        R"({"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yes"},)"
        R"({"role":"tool","content":"1"}],"tools":[{"a":1}]})");
  CHECK(first_of(R"({"conversations": [{"role": "user", "content": "hi"}]})") ==
        R"({"messages":[{"role":"user","content":"hi"}]})");
  CHECK(first_of(R"({"messages": [{"role": "assistant", "tool_calls": [{"id": 1}]}]})") ==
        R"({"messages":[{"role":"assistant","tool_calls":[{"id":1}]}]})");
}

TEST_CASE("chat: a malformed conversation is an error with its line and message") {
  const auto refuses = [](const std::string& line, const std::string& what) {
    CAPTURE(line);
    CHECK(first_of(line) == "a.jsonl:1: " + what);
  };
  refuses(R"({"messages": []})", "the conversation is empty: it has no message");
  refuses(R"({"messages": "hi"})", "\"messages\" is not a list");
  refuses(R"({"prompt": "hi"})", "has neither \"messages\" nor \"conversations\"");
  refuses(R"({"messages": ["hi"]})", "message 1 is not an object");
  refuses(R"({"messages": [{"role": "", "content": "hi"}]})", "message 1 has no \"role\"");
  refuses(R"({"messages": [{"role": "user", "content": "hi"}, {"role": "user"}]})", "message 2 has no \"content\"");
  refuses(R"({"messages": [{"role": "user", "content": 1}]})",
          "message 1: \"content\" is neither text nor a list of parts");
  refuses(R"({"conversations": [{"from": "bot", "value": "hi"}]})",
          "message 1: \"from\" is 'bot', which is none of human, user, gpt, assistant, system, tool");
  refuses(R"({"messages": [{"role": "user", "content": "hi"}], "tools": 1})", "\"tools\" is not a list");
}

TEST_CASE("chat: a file holds conversations if its first line does, and no text") {
  const TemporaryFolder folder;
  const auto holds = [&](const std::string& name, const std::string& line) {
    std::ofstream(folder.file(name)) << line << "\n";
    return holds_conversations(folder.file(name));
  };
  CHECK(holds("a.jsonl", R"({"messages": []})"));
  CHECK(holds("b.jsonl", R"({"conversations": []})"));
  CHECK_FALSE(holds("c.jsonl", R"({"text": "hi", "messages": []})"));
  CHECK_FALSE(holds("d.txt", R"({"messages": []})"));
  CHECK_FALSE(holds("e.jsonl", ""));
}

TEST_CASE("chat: the template and its tokens, from each place where a tokenizer has them") {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder.file(name)) << text;
  };
  CHECK_THROWS_WITH(open_template(folder.path()), doctest::Contains("has no chat template"));
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}],
            "bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": null,
            "added_tokens_decoder": {"5": {"content": "<x>", "special": true}, "6": {"content": "y", "special": false}}})");
  Template made = open_template(folder.path());
  CHECK(made.usual.text == "d");
  CHECK(made.usual.place == folder.file("tokenizer_config.json") + ": chat_template");
  CHECK(made.tokens == std::map<std::string, std::string>{{"bos_token", "<s>"}, {"eos_token", "</s>"}});
  CHECK(made.special == std::vector<std::string>{"<s>", "</s>", "<x>"});
  // A file of its own counts more; a path to a file of the folder names the folder.
  write("chat_template.jinja", "j");
  write("tokenizer.json", R"({"added_tokens": [{"content": "<z>", "special": true}]})");
  made = open_template(folder.file("tokenizer.json"));
  CHECK(made.usual.text == "j");
  CHECK(made.special.back() == "<z>");
  CHECK(template_files(folder.path()).size() == 3);
  CHECK(!made.tool_use);
  std::filesystem::create_directory(folder.file("additional_chat_templates"));
  write("additional_chat_templates/tool_use.jinja", "t");
  made = open_template(folder.path());
  REQUIRE(made.tool_use);
  CHECK(made.tool_use->text == "t");
  CHECK(template_files(folder.path()).size() == 4);
  std::filesystem::remove(folder.file("chat_template.jinja"));
  write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "r"}]})");
  CHECK_THROWS_WITH(open_template(folder.path()), doctest::Contains("none of which is called default"));
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "tool_use", "template": "u"}, {"name": "default", "template": "d"}]})");
  CHECK(open_template(folder.path()).tool_use->text == "u");
}

TEST_CASE("chat: tokens with names, also a tokenizer's own ones and those of special_tokens_map.json") {
  const TemporaryFolder folder;
  const auto named_by = [&](const std::string& config, const std::string& map) {
    std::ofstream(folder.file("tokenizer_config.json")) << config;
    std::ofstream(folder.file("special_tokens_map.json")) << map;
    std::ofstream(folder.file("chat_template.jinja")) << "j";
    return open_template(folder.path()).tokens;
  };
  using Named = std::map<std::string, std::string>;
  CHECK(named_by(R"({"bos_token": "<s>", "eos_token": "a", "add_bos_token": true, "image_token": "<i>",
                     "extra_special_tokens": {"eot_token": "<e>"}, "model_specific_special_tokens": {"video_token": "<v>"}})",
                 R"({"eos_token": {"content": "</s>"}, "additional_special_tokens": ["<x>"]})") ==
        Named{{"bos_token", "<s>"},
              {"eos_token", "</s>"},
              {"eot_token", "<e>"},
              {"image_token", "<i>"},
              {"video_token", "<v>"}});
  // As transformers: the map does not count beside added_tokens_decoder.
  CHECK(named_by(R"({"bos_token": "<s>", "added_tokens_decoder": {}})", R"({"eos_token": "</s>"})") ==
        Named{{"bos_token", "<s>"}});
  CHECK_THROWS_WITH(named_by(R"({"eos_token": 7})", "{}"), doctest::Contains("eos_token: expected text"));
}

}  // namespace
}  // namespace zs::chat
