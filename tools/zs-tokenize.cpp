// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "base/file.hpp"
#include "chat/tokens.hpp"
#include "cli/run.hpp"
#include "input/named.hpp"
#include "token/document.hpp"
#include "token/file.hpp"
#include "token/tokenize.hpp"

namespace {

namespace fs = std::filesystem;
using zs::cli::Args;
using zs::token::Id;
using zs::token::Layout;
using zs::token::Tokenizer;

const zs::cli::Command kCommand = {
    "zs-tokenize",
    "Turn text into a token file, with exactly the ids of the model's tokenizer, or back",
    "[FILE]...",
    {
        {'t', "tokenizer", "PATH", "tokenizer.json, *.model, vocab.json, or a folder that holds one"},
        {'o', "output", "FILE|DIR", "write a token file; for a folder with parts, DIR/train.bin, val.bin, test.bin",
         "-"},
        {'f',
         "format",
         "NAME",
         "layout of token files; ids is text, a line for each document [ids on stdout, llmc in files]",
         "",
         {"llmc", "nanogpt", "ids"}},
        {0, "separator", "TOKEN", "token after each document in a token file [the tokenizer's end of text]"},
        {0, "no_separator", "", "write no token after documents"},
        {0, "text_key", "KEY", "read JSON Lines with the text in this field [text, in *.jsonl]"},
        {0,
         "loss_on",
         "WHAT",
         "conversations: tokens that count in the loss, all or only the assistant's",
         "all",
         {"all", "assistant"}},
        {0, "threads", "N", "threads [one for each processor]"},
        {'d', "decode", "", "print the text of token files, or of ids with --format ids"},
        {'i', "info", "", "describe token files: layout, bytes of an id, number of ids, largest id"},
    },
    {},
    {"printf 'low lowlo' | zs-tokenize --tokenizer vocab.json", "zs-tokenize --info train.bin",
     "zs-tokenize --tokenizer vocab.json --decode train.bin"}};

std::unique_ptr<Tokenizer> tokenizer_of(const Args& args) {
  if (!args.has("tokenizer")) throw zs::UsageError("expected --tokenizer PATH");
  return zs::token::open_tokenizer(args.text("tokenizer"));
}

int threads_of(const Args& args) {
  return args.has("threads") ? static_cast<int>(args.integer("threads", 1, 1024)) : zs::token::processors();
}

/// Nothing, or the id behind each document.
std::optional<Id> separator_of(const Args& args, const Tokenizer& tokenizer) {
  if (args.has("no_separator")) return {};
  if (args.has("separator")) {
    const auto id = tokenizer.find(args.text("separator"));
    if (!id) throw zs::UsageError("--separator: the tokenizer has no token '" + args.text("separator") + "'");
    return id;
  }
  if (const auto id = tokenizer.end_of_text()) return id;
  throw zs::UsageError("the tokenizer names no end of text: name a token by --separator, or give --no_separator");
}

/// Whether all files hold conversations, or none.
bool of_conversations(const Args& args, const std::vector<std::string>& files) {
  if (args.has("text_key")) return false;
  const auto chats = [](const std::string& file) { return zs::chat::holds_conversations(file); };
  const auto with = std::ranges::find_if(files, chats), without = std::ranges::find_if_not(files, chats);
  if (with != files.end() && without != files.end())
    throw zs::Error(*without, 0, "holds no conversations, as " + *with + " does: name files of one kind");
  if (with == files.end() && args.has("loss_on"))
    throw zs::UsageError("--loss_on is for conversations: JSON Lines with \"messages\" or \"conversations\"");
  if (with != files.end() && (args.has("separator") || args.has("no_separator")))
    throw zs::UsageError("--separator and --no_separator are for text: a chat template ends conversations itself");
  return with != files.end();
}

zs::chat::Chat chat_of(const Args& args, const std::vector<std::string>& files) {
  return {files, args.text("tokenizer"),
          args.text("loss_on") == "assistant" ? zs::chat::LossOn::assistant : zs::chat::LossOn::all};
}

void write_conversations(const Args& args, const Tokenizer& tokenizer, const std::vector<std::string>& files,
                         const std::string& output, Layout layout) {
  if (output == "-")
    throw zs::UsageError(
        "a token file of conversations needs a file of marks: name it with --output, or use --format ids");
  zs::token::MarkedWriter out(output, layout, tokenizer.size());
  zs::chat::tokenize(tokenizer, chat_of(args, files), threads_of(args),
                     [&](const auto& ids, const auto& marks) { out.write(ids, marks); });
  out.commit();
}

void write_tokens(const Args& args, const Tokenizer& tokenizer, const std::vector<std::string>& files,
                  const std::string& output) {
  zs::input::named(files, "", kCommand.name);
  const zs::token::Texts texts{files, args.text("text_key")};
  const bool chat = of_conversations(args, files);
  if (args.text("format") == "ids" || (!args.has("format") && output == "-")) {
    zs::Output out(output);
    if (chat)
      zs::chat::tokenize(tokenizer, chat_of(args, files), threads_of(args),
                         [&](const auto& ids, const auto&) { out.write(zs::token::ids_text(ids)); });
    else
      zs::token::tokenize(tokenizer, texts, threads_of(args),
                          [&](std::vector<Id>& ids) { out.write(zs::token::ids_text(ids)); });
    return out.commit();
  }
  const Layout layout = args.text("format") == "nanogpt" ? Layout::nanogpt : Layout::llmc;
  if (chat) return write_conversations(args, tokenizer, files, output, layout);
  const auto separator = separator_of(args, tokenizer);
  zs::token::TokenWriter out(output, layout, tokenizer.size());
  zs::token::tokenize(tokenizer, texts, threads_of(args), [&](std::vector<Id>& ids) {
    if (separator) ids.push_back(*separator);
    out.write(ids);
  });
  out.commit();
}

void encode(const Args& args) {
  const auto tokenizer = tokenizer_of(args);
  const std::string output = args.text("output");
  std::vector<std::string> files;
  for (const std::string& path : args.inputs()) {
    if (path == "-" || !fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> left_out;
    const auto divisions = zs::token::divisions(path, left_out);
    if (divisions.front().name.empty()) {
      files.insert(files.end(), divisions.front().files.begin(), divisions.front().files.end());
      continue;
    }
    if (args.inputs().size() > 1)
      throw zs::UsageError(path + ": a folder with train, val or test must be the only operand");
    if (output == "-") throw zs::UsageError(path + ": holds train, val or test: name a folder for them by --output");
    for (const auto& file : left_out) zs::cli::warn(kCommand, file + ": is named for no division, and left out");
    fs::create_directories(output);
    for (const auto& division : divisions)
      write_tokens(args, *tokenizer, division.files, (fs::path(output) / (division.name + ".bin")).string());
    return;
  }
  write_tokens(args, *tokenizer, files, output);
}

void decode(const Args& args) {
  const auto tokenizer = tokenizer_of(args);
  zs::Output out(args.text("output"));
  const auto text = [&](const std::vector<Id>& ids) { out.write(tokenizer->decode(ids)); };
  const bool ids = args.text("format") == "ids";
  for (const auto& [name, path, kind, run] :
       zs::input::named(args.inputs(), "", kCommand.name + (ids ? "" : " --decode"))) {
    if (ids)
      zs::token::read_ids(path, tokenizer->size(), text);
    else
      zs::token::read_documents(zs::token::TokenFile(path, tokenizer->size()), tokenizer->end_of_text(), text);
  }
  out.commit();
}

/// Describes the marks of a token file; "" if there are none.
std::string marks_text(const zs::token::TokenFile& file) {
  if (!fs::exists(zs::token::marks_path(file.path()))) return "";
  const zs::token::Marks marks(file);
  std::int64_t trained = 0, begins = 0;
  for (const char mark : marks.bytes(file.count()))
    trained += (mark & zs::token::kTrained) != 0, begins += (mark & zs::token::kBegins) != 0;
  return ", " + std::to_string(begins) + " conversations, the loss of " + std::to_string(trained) + " ids";
}

void describe(const Args& args) {
  zs::Output out("-");
  for (const auto& named : zs::input::named(args.operands(), "", kCommand.name + " --info")) {
    const std::string& path = named.path;
    const zs::token::TokenFile file(path);
    out.write(path + ": " + (file.layout() == Layout::llmc ? "llmc" : "nanogpt") + ", " + std::to_string(file.width()) +
              " bytes an id, " + std::to_string(file.count()) + " ids, the largest " + std::to_string(file.largest()) +
              marks_text(file) + "\n");
  }
  if (args.operands().empty()) throw zs::UsageError("expected a token file");
  out.commit();
}

zs::Status run(const Args& args) {
  if (args.has("decode") && args.has("info")) throw zs::UsageError("--decode and --info exclude each other");
  if (args.has("info"))
    describe(args);
  else if (args.has("decode"))
    decode(args);
  else
    encode(args);
  return zs::Status::done;
}

}  // namespace

int main(int argc, char** argv) { return zs::cli::run(kCommand, argc, argv, run); }
