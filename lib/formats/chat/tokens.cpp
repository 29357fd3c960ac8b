// SPDX-License-Identifier: Apache-2.0
#include "chat/tokens.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/error.hpp"

namespace zs::chat {
namespace {

using token::Id;
using token::Mark;

/// Marks the first token of a conversation as its beginning, and the others as targets: all of them, or those with a
/// byte of the assistant's text. A token without bytes counts as the next byte does.
std::vector<Mark> marks_of(const token::Placed& placed, const Rendered& rendered, LossOn loss_on) {
  std::vector<Mark> marks(placed.ids.size(), loss_on == LossOn::all ? token::kTrained : 0);
  if (loss_on == LossOn::assistant) {
    std::size_t begin = 0;
    for (std::size_t i = 0; i < marks.size(); begin = placed.ends[i++]) {
      const std::size_t end = std::max(placed.ends[i], begin + 1);
      for (const auto& [first, last] : rendered.said) {
        if (begin < last && end > first) marks[i] = token::kTrained;
      }
    }
  }
  if (!marks.empty()) marks[0] = token::kBegins;
  return marks;
}

/// The text as the tokenizer takes it, and the counted ranges in it. Throws Error, without place, if a border of a
/// range is inside a composed letter.
Rendered normalized(const token::Tokenizer& tokenizer, Rendered rendered) {
  std::string whole = tokenizer.normalized(rendered.text);
  if (whole == rendered.text) return rendered;
  const auto length = [&](std::size_t end) {
    return tokenizer.normalized(std::string_view(rendered.text).substr(0, end)).size();
  };
  for (auto& [first, last] : rendered.said) {
    const std::size_t begin = length(first), end = length(last);
    const bool apart = tokenizer.normalized(std::string_view(rendered.text).substr(first)) == whole.substr(begin) &&
                       tokenizer.normalized(std::string_view(rendered.text).substr(last)) == whole.substr(end);
    if (!apart)
      throw Error(
          "what the assistant says begins or ends within a letter, of which the accent is elsewhere: put a "
          "blank between them");
    first = begin, last = end;
  }
  rendered.text = std::move(whole);
  return rendered;
}

std::vector<token::Placed> placed_by(const token::Tokenizer& tokenizer, const Chat& chat,
                                     const std::vector<std::string_view>& texts, int threads) {
  try {
    return tokenizer.encode_chat(texts, threads);
  } catch (const Error& error) {
    throw Error(chat.tokenizer, 0, error.what());
  }
}

}  // namespace

void tokenize(const token::Tokenizer& tokenizer, const Chat& chat, int threads,
              const std::function<void(const std::vector<Id>&, const std::vector<Mark>&)>& sink) {
  constexpr std::size_t kBatch = 1 << 16;  // conversations
  Template by = open_template(chat.tokenizer);
  for (const auto& [name, content] : tokenizer.named()) {
    if (by.tokens.emplace(name, content).second) by.special.push_back(content);
  }
  for (const std::string& file : chat.files) {
    ConversationReader reader(file);
    for (bool more = true; more;) {
      std::vector<Conversation> conversations(1);
      while (conversations.size() <= kBatch && (more = reader.next(conversations.back()))) conversations.emplace_back();
      conversations.pop_back();
      std::vector<Rendered> rendered = render(by, chat.loss_on, conversations, file);
      for (std::size_t i = 0; i < rendered.size(); ++i) {
        try {
          rendered[i] = normalized(tokenizer, std::move(rendered[i]));
        } catch (const Error& error) {
          throw Error(file == "-" ? "stdin" : file, conversations[i].line, error.what());
        }
      }
      std::vector<std::string_view> texts;
      for (const Rendered& each : rendered) texts.emplace_back(each.text);
      const std::vector<token::Placed> placed = placed_by(tokenizer, chat, texts, threads);
      for (std::size_t i = 0; i < placed.size(); ++i)
        sink(placed[i].ids, marks_of(placed[i], rendered[i], chat.loss_on));
    }
  }
}

std::vector<token::Tokenized> tokenized(const std::string& path, const std::string& tokenizer, LossOn loss_on,
                                        const std::string& folder, int threads, std::vector<std::string>& left_out) {
  const char* const epoch = std::getenv("SOURCE_DATE_EPOCH");
  token::Making making;
  making.base = std::string("zs chat 3\n") + (loss_on == LossOn::all ? "all" : "assistant") + "\n";
  making.depends_on = template_files(tokenizer);
  // A template may write the day.
  const Template by = open_template(tokenizer);
  if ((by.usual.text + (by.tool_use ? by.tool_use->text : "")).find("strftime_now") != std::string::npos)
    making.base += epoch ? epoch : token::today();
  making.make = [&](const std::vector<std::string>& files, const token::Tokenizer& opened, const std::string& to) {
    token::MarkedWriter writer(to, token::Layout::llmc, opened.size());
    tokenize(opened, {files, tokenizer, loss_on}, threads,
             [&](const std::vector<Id>& ids, const std::vector<Mark>& marks) { writer.write(ids, marks); });
    writer.commit();
  };
  return token::cached(path, tokenizer, folder, making, left_out);
}

}  // namespace zs::chat
