// SPDX-License-Identifier: Apache-2.0
#include "token/tokenizer.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/json.hpp"
#include "token/beside.hpp"

namespace zs::token {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string in_folder(const std::string& path) {
  for (const char* name : {"tokenizer.model", "tokenizer.json", "vocab.json"}) {
    if (is_there(fs::path(path) / name)) return (fs::path(path) / name).string();
  }
  return "";
}

/// The file to open for a path: itself, or what a folder holds.
std::string chosen(const std::string& path) {
  if (!is_folder(path)) return path;
  if (std::string file = in_folder(path); !file.empty()) return file;
  throw Error(path, 0, "holds no tokenizer: neither tokenizer.model nor tokenizer.json nor vocab.json");
}

}  // namespace

void refuse_added(const std::string& path, const std::string& file) {
  throw Error(path, 0,
              "adds tokens that " + fs::path(file).filename().string() +
                  " does not know: name the tokenizer.json that has them, or take this file away");
}

bool holds_tokenizer(const std::string& path) { return is_folder(path) && !in_folder(path).empty(); }

std::vector<std::string> tokenizer_files(const std::string& path) {
  const std::string file = chosen(path);
  const fs::path folder = fs::path(file).parent_path();
  std::vector<std::string> files = {file};
  if (fs::path(file).filename() == "vocab.json") files.push_back((folder / "merges.txt").string());
  for (const std::string& name : kBesideFiles) {
    if (is_there(folder / name)) files.push_back((folder / name).string());
  }
  return files;
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& path) {
  const std::string file = chosen(path);
  const fs::path folder = fs::path(file).parent_path();
  if (file.ends_with(".model")) return open_sentencepiece(file);
  std::map<std::string, std::string> named = named_tokens(folder.string());
  const std::string& end = named["eos_token"];
  if (fs::path(file).filename() == "vocab.json") {
    if (const fs::path added = folder / "added_tokens.json"; is_there(added)) refuse_added(added.string(), file);
    return open_vocabulary(file, (folder / "merges.txt").string(), end.empty() ? "<|endoftext|>" : end);
  }
  if (!file.ends_with(".json"))
    throw Error(file, 0, "is not a tokenizer by its name: expected *.json, *.model or a folder with one");
  return open_tokenizer_json(file, end);
}

}  // namespace zs::token
