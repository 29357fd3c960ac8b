// SPDX-License-Identifier: Apache-2.0
#include "chat/tokens.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"

namespace zs::chat {
namespace {

/// Three bytes are a token; "e'" is composed to "E".
class Triples : public token::Tokenizer {
 public:
  std::vector<std::vector<token::Id>> encode(const std::vector<std::string_view>&, int) const override { return {}; }
  std::vector<token::Placed> encode_chat(const std::vector<std::string_view>& texts, int) const override {
    std::vector<token::Placed> placed;
    for (const std::string_view text : texts) {
      token::Placed& made = placed.emplace_back();
      for (std::size_t begin = 0; begin < text.size(); begin += 3)
        made.ids.push_back(static_cast<token::Id>(begin)), made.ends.push_back(std::min(begin + 3, text.size()));
    }
    return placed;
  }
  std::string normalized(std::string_view text) const override {
    std::string made(text);
    for (std::size_t at; (at = made.find("e'")) != made.npos;) made.replace(at, 2, "E");
    return made;
  }
  std::string decode(const std::vector<token::Id>&) const override { return ""; }
  token::Id size() const override { return 100; }
  std::optional<token::Id> find(const std::string&) const override { return {}; }
  std::optional<token::Id> end_of_text() const override { return {}; }
};

/// The marks of the one conversation of a file, or the error; `answer` is what the program that renders it answers.
std::string marked(const std::string& answer, LossOn loss_on = LossOn::assistant, int status = 0) {
  const TemporaryFolder folder;
  const auto write_to = [&](const std::string& name, const std::string& text) { write_file(folder.file(name), text); };
  write_to("chat_template.jinja", "x"), write_to("answer", answer);
  write_to("talk.jsonl", R"({"messages": [{"role": "user", "content": "hi"}]})"
                         "\n");
  write_to("python3", "#!/bin/sh\ncat >/dev/null\ncat " + folder.file("answer") + "\necho 'why not' >&2\nexit " +
                          std::to_string(status) + "\n");
  ::chmod(folder.file("python3").c_str(), 0755);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (folder.path() + ":" + path).c_str(), 1);
  std::string text;
  try {
    tokenize(Triples(), {{folder.file("talk.jsonl")}, folder.path(), loss_on}, 1,
             [&](const std::vector<token::Id>&, const std::vector<token::Mark>& marks) {
               for (const token::Mark mark : marks)
                 text += mark == token::kBegins ? 'B' : mark == token::kTrained ? 'T' : mark == 0 ? '.' : '?';
             });
  } catch (const Error& error) {
    text = std::string(error.what()).substr(folder.path().size() + 1);
  }
  ::setenv("PATH", path.c_str(), 1);
  return text;
}

TEST_CASE("chat: a token counts if one of its bytes is the assistant's; the first one begins the conversation") {
  const auto spoken = [](const char* spans) {
    return R"({"text": "abcdefghijkl", "spans": )" + std::string(spans) + "}\n";
  };
  const std::string head = "{}\n";
  CHECK(marked(head + spoken("[[6, 9]]")) == "B.T.");
  CHECK(marked(head + spoken("[[5, 7]]")) == "BTT.");
  CHECK(marked(head + spoken("[[3, 4], [11, 12]]")) == "BT.T");
  CHECK(marked(head + spoken("[]")) == "B...");
  CHECK(marked(head + spoken("[]"), LossOn::all) == "BTTT");
}

TEST_CASE("chat: what the assistant says is found again in the composed text; within a letter it is an error") {
  const auto spoken = [](const char* spans) {
    return "{}\n"
           R"({"text": "e'e'e'abcdef", "spans": )" +
           std::string(spans) + "}\n";
  };
  CHECK(marked(spoken("[[6, 12]]")) == "BTT");  // EEE abc def
  CHECK(marked(spoken("[[9, 12]]")) == "B.T");
  CHECK(
      marked(spoken("[[5, 12]]")).starts_with("talk.jsonl:1: what the assistant says begins or ends within a letter"));
}

TEST_CASE("chat: what the program that renders a conversation answers is told with its place") {
  const std::string head = "{}\n";
  struct Row {
    std::string answer, error;
    int status = 0;
  };
  for (const auto& [answer, error, status] :
       std::vector<Row>{{R"({"syntax": "no end", "line": 3})"
                         "\n{}\n",
                         "chat_template.jinja:3: is not a Jinja template: no end"},
                        {R"({"limit": "1 s"})"
                         "\n",
                         "chat_template.jinja: the chat template takes more than 1 s, the limit for a conversation"},
                        {head + R"({"refused": "no role"})"
                                "\n",
                         "talk.jsonl:1: the chat template refuses the conversation: no role"},
                        {head + R"({"refused": null, "turn": 2})"
                                "\n",
                         "talk.jsonl:1: message 2: what of the text the assistant says cannot be told"},
                        {head + R"({"failed": "x is undefined"})"
                                "\n",
                         "talk.jsonl:1: the chat template fails: x is undefined"},
                        {head + R"({"limit": "1 s"})"
                                "\n",
                         "talk.jsonl:1: the chat template takes more than 1 s"},
                        {head, "chat_template.jinja: the program that renders it ended with status 1: why not", 1}}) {
    CAPTURE(answer);
    CHECK(marked(answer, LossOn::assistant, status).substr(0, error.size()) == error);
  }
}

}  // namespace
}  // namespace zs::chat
