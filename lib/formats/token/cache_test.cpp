// SPDX-License-Identifier: Apache-2.0
#include "token/cache.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "token/file.hpp"

namespace zs::token {
namespace {

namespace fs = std::filesystem;

std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("token cache: what was tokenised is found again, and what has changed is tokenised anew") {
  const TemporaryFolder folder;
  const std::string text = folder.file("text"), tokenizer = folder.file("t.json"), cache = folder.file("cache/tokens");
  write_file(tokenizer, Input("tests/token/gpt2.json").read_all());
  write_file(text, "the license");
  std::vector<std::string> left_out;
  const auto made = [&](const std::string& path) { return tokenized(path, tokenizer, cache, 2, left_out); };
  const auto first = made(text);
  REQUIRE(first.size() == 1);
  CHECK(first[0].name.empty());
  const TokenFile file(first[0].path);
  const auto model = open_tokenizer(tokenizer);
  std::vector<Id> ids(static_cast<std::size_t>(file.count()));
  file.copy(0, file.count(), ids.data());
  CHECK(model->decode(ids) == "the license<|endoftext|>");

  // Found again, not made again: the file is the same one. A copy elsewhere is the same text.
  const auto time = fs::last_write_time(first[0].path);
  CHECK(made(text)[0].path == first[0].path);
  write_file(folder.file("copy"), "the license");
  CHECK(made(folder.file("copy"))[0].path == first[0].path);
  CHECK(fs::last_write_time(first[0].path) == time);
  CHECK(files_in(cache) == 1);

  write_file(text, "the License");
  CHECK(made(text)[0].path != first[0].path);
  CHECK(files_in(cache) == 2);
  write_file(tokenizer, Input("tests/token/llama3.json").read_all());
  CHECK(made(text)[0].path != first[0].path);
  CHECK(files_in(cache) == 3);
  // What stands beside a tokenizer says which token ends a text.
  write_file(folder.file("tokenizer_config.json"), R"({"eos_token": "<|x|>"})");
  const TokenFile other(made(text)[0].path);
  CHECK(other.id(other.count() - 1) == *open_tokenizer(tokenizer)->find("<|x|>"));
  CHECK(files_in(cache) == 4);
  // So does the field of JSON Lines.
  write_file(text, R"({"a": "the", "b": "license"})");
  const auto field = [&](const char* key) { return tokenized(text, tokenizer, cache, 2, left_out, key)[0].path; };
  const TokenFile a(field("a")), b(field("b"));
  CHECK(a.id(0) != b.id(0));
  CHECK(files_in(cache) == 6);
}

TEST_CASE("token cache: a divided folder has a file for each part") {
  const TemporaryFolder folder;
  fs::create_directories(folder.file("wiki"));
  write_file(folder.file("wiki/wiki.train.raw"), "one");
  write_file(folder.file("wiki/wiki.valid.raw"), "two");
  write_file(folder.file("wiki/notes"), "no");
  std::vector<std::string> left_out;
  const auto parts = tokenized(folder.file("wiki"), "tests/token/bpe.model", folder.file("cache"), 1, left_out);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].name == "train");
  CHECK(parts[1].name == "val");
  CHECK(parts[0].path != parts[1].path);
  CHECK(left_out == std::vector<std::string>{folder.file("wiki/notes")});
}

TEST_CASE("token cache: the same bytes as JSON Lines are another text") {
  const TemporaryFolder folder;
  for (const char* name : {"a.txt", "a.jsonl"}) write_file(folder.file(name), "{\"text\": \"one\"}\n");
  std::vector<std::string> left_out;
  const auto path = [&](const char* name) {
    return tokenized(folder.file(name), "tests/token/gpt2.json", folder.file("cache"), 1, left_out)[0].path;
  };
  CHECK(path("a.txt") != path("a.jsonl"));
}

}  // namespace zs::token
