// SPDX-License-Identifier: Apache-2.0
#include "data/text.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "data/corpus.hpp"
#include "token/file.hpp"
#include "token/marks.hpp"
#include "token/tokenizer.hpp"

namespace zs::data {
namespace {

/// The tokens of samples as the text that they are.
std::string bytes(const Samples& samples) { return {samples.tokens.begin(), samples.tokens.end()}; }
std::string all(const Dataset& part) { return bytes(read(part, 0, part.size())); }

void put(const std::string& path, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  write_file(path, content);
}

Split split_text(const std::string& path, const HeldOut& held_out = {}) {
  return text({.path = path, .vocabulary = 256, .length = 4, .held_out = held_out});
}

TEST_CASE("text: a file's last windows are held out, for validation and, if asked for, for a test") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  write_file(path, "aaaabbbbccccddddeeeef");
  const Split two = split_text(path);
  CHECK(all(*two.training) == "aaaabbbbccccdddd");
  CHECK(all(*two.validation) == "eeee");
  CHECK(two.test == nullptr);
  CHECK(two.tokens == 21);
  const Split three = split_text(path, {0.4, 0.2});
  CHECK(all(*three.training) == "aaaabbbb");
  CHECK(all(*three.validation) == "ccccdddd");
  CHECK(all(*three.test) == "eeee");
  CHECK(three.sha256 == two.sha256);
  CHECK_THROWS_WITH_AS(split_text(path, {0.6, 0.6}), doctest::Contains("leaves nothing to train on"), Error);
}

TEST_CASE("text: parts of a folder are train, valid and test by name; what belongs to none is told") {
  const TemporaryFolder folder;
  const std::string root = folder.file("wiki");
  put(root + "/wiki.train.raw", "aaaabbbbb");
  put(root + "/wiki.valid.raw", "ccccc");
  put(root + "/wiki.test.raw", "ddddd");
  put(root + "/LICENSE", "mine");
  const Split made = split_text(root);
  CHECK(all(*made.training) == "aaaabbbb");
  CHECK(all(*made.validation) == "cccc");
  CHECK(all(*made.test) == "dddd");
  REQUIRE(made.notes.size() == 1);
  CHECK(made.notes[0].find("1 files belong to no part") == 0);
  CHECK(HeldOut{0.4, 0.3}.without_effect(true, true) ==
        std::vector<std::string>{"validation_fraction has no effect: the data set has a validation part",
                                 "test_fraction has no effect: the data set has a test part"});
  CHECK(HeldOut{0.4, 0.3}.without_effect(false, false).empty());
  CHECK(HeldOut{}.without_effect(true, true).empty());
  std::filesystem::remove(root + "/wiki.valid.raw");
  CHECK(all(*split_text(root).validation) == "bbbb");  // held out of training
  CHECK(split_text(root).sha256 != made.sha256);
  std::filesystem::remove(root + "/wiki.train.raw");
  CHECK(split_text(root).tokens == 10);  // no part is one to train on: all of it is text
}

TEST_CASE("text: parts are named in front of a number too, and Parquet is told what to become") {
  const TemporaryFolder folder;
  const std::string root = folder.file("hub");
  put(root + "/data/train-00000-of-00002.jsonl", "{\"text\": \"aaaaaaaa\"}\n");
  put(root + "/data/train-00001-of-00002.jsonl", "{\"text\": \"bbbbbbb\"}\n");
  put(root + "/data/validation_0.txt", "ccccc");
  put(root + "/data/test-taking.txt", "dddd");
  const Split made = split_text(root);
  CHECK(all(*made.training) == std::string("aaaaaaaa\0bbb", 12));
  CHECK(all(*made.validation) == "cccc");
  CHECK(made.test == nullptr);
  put(root + "/data/test-00000-of-00001.parquet", std::string("PAR1\x15\0", 6));
  CHECK_THROWS_WITH_AS(split_text(root),
                       doctest::Contains("test-00000-of-00001.parquet: is a Parquet file: make JSON Lines"), Error);
}

TEST_CASE("text: a folder that datasets saved is refused with its recipe, for its metadata is no text") {
  const TemporaryFolder folder;
  const std::string root = folder.file("saved");
  put(root + "/state.json", R"({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]})");
  put(root + "/dataset_info.json", "{}");
  put(root + "/data-00000-of-00001.arrow", std::string("\xFF\xFF\xFF\xFF\0", 5));
  CHECK_THROWS_WITH_AS(split_text(root), doctest::Contains(("load_from_disk(\"" + root + "\").to_json").c_str()),
                       Error);
  const std::string parts = folder.file("parts");
  put(parts + "/dataset_dict.json", R"({"splits": ["train"]})");
  put(parts + "/train/data-00000-of-00001.arrow", "ARROW1");
  CHECK_THROWS_WITH_AS(split_text(parts), doctest::Contains(".items()]"), Error);
}

TEST_CASE("text: JSON Lines are documents with a separator between them") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.jsonl");
  write_file(path, "{\"text\": \"aaaa\"}\n{\"text\": \"bbbbcccc\"}\n");
  CHECK(all(*split_text(path).training) + all(*split_text(path).validation) == std::string("aaaa\0bbbbccc", 12));
  write_file(path, "{\"text\": \"aaaa\"}\n{\"content\": 1}\n");
  CHECK_THROWS_WITH_AS(split_text(path), doctest::Contains("x.jsonl:2: has no \"text\""), Error);
  const std::string other = folder.file("x.json");
  write_file(other, "{\"content\": \"aaaa\"}\n{\"content\": \"bbbbcccc\"}\n");
  const auto keyed = [&](const std::string& path) {
    return text({.path = path, .text_key = "content", .vocabulary = 256, .length = 4});
  };
  CHECK(all(*keyed(other).training) + all(*keyed(other).validation) == std::string("aaaa\0bbbbccc", 12));
  CHECK_THROWS_WITH_AS(keyed(path), doctest::Contains("x.jsonl:1: has no \"content\""), Error);
}

TEST_CASE("text: folders of token files are train.bin and val.bin; others among them are refused") {
  const TemporaryFolder folder;
  const std::string root = folder.file("ids");
  std::filesystem::create_directories(root);
  const auto write = [&](const char* name, token::Id first) {
    token::TokenWriter writer(root + "/" + name, token::Layout::nanogpt, 100);
    writer.write({first, first, first, first, first, first});
    writer.commit();
  };
  write("train.bin", 7);
  write("val.bin", 8);
  const Split made = split_text(root);
  CHECK(all(*made.training) == "\7\7\7\7");
  CHECK(all(*made.validation) == "\10\10\10\10");
  put(root + "/train.txt", "text");
  CHECK_THROWS_WITH_AS(split_text(root), doctest::Contains("with unclear roles: name one"), Error);
}

TEST_CASE("text: packing none begins a sample with each document, and pads behind its end") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.jsonl");
  write_file(path, R"({"text": "abcdef"}
{"text": ""}
{"text": "g"}
{"text": "hijk"}
{"text": "lmnopqrst"}
)");
  const auto made = text({.path = path, .vocabulary = 256, .length = 4, .packing = Packing::none});
  const auto targets = [](const Dataset& part) {
    std::string shown;
    for (const std::int64_t target : read(part, 0, part.size()).targets)
      shown += target == kPadding ? '.' : target == kSeparator ? '|' : static_cast<char>(target);
    return shown;
  };
  // A document's last target is the end of text behind it; the last one of all has none behind it.
  CHECK(all(*made.training) == std::string("abcdef\0\0g\0\0\0hijklmno", 20));
  CHECK(targets(*made.training) == "bcdef|..|...ijk|mnop");
  CHECK(all(*made.validation) == "pqrs");
  CHECK(targets(*made.validation) == "qrst");
  CHECK(made.documents == 4);
  CHECK(made.tokens == 24);
  CHECK(made.training->pads());
  CHECK(made.training->targets(0) == 4);
  CHECK(made.training->targets(2) == 1);
  REQUIRE(made.notes.size() == 2);
  CHECK(made.notes[0] == "packing none: 4 documents in 6 sequences of 4 tokens, 21 % of them padding");
  CHECK(made.notes[1].starts_with("2 documents are longer than a sequence, and go on in another one"));
  const Split whole = split_text(path);
  CHECK(!whole.training->pads());
  CHECK(whole.tokens == made.tokens);
  CHECK(whole.sha256 != made.sha256);  // other samples
}

TEST_CASE("text: packing masked fills a sample with whole documents, and says where each begins") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.jsonl");
  write_file(path, R"({"text": "abcdef"}
{"text": ""}
{"text": "g"}
{"text": "hijk"}
{"text": "lmnopqrstu"}
)");
  const auto made = text({.path = path, .vocabulary = 256, .length = 8, .packing = Packing::masked});
  const Samples samples = read(*made.training, 0, made.training->size());
  std::string shown;
  for (const std::int64_t target : samples.targets)
    shown += target == kPadding ? '.' : target == kSeparator ? '|' : static_cast<char>(target);
  // The end of text is a target of its document's last token, no input, and nothing is predicted across documents.
  CHECK(all(*made.training) == std::string("abcdefgthijk\0\0\0\0", 16));
  CHECK(shown == "bcdef||uijk|....");
  CHECK(samples.documents == std::vector<std::int64_t>{0, 6, 7, 8, 12});  // padding is as a document of its own
  CHECK(samples.lengths == std::vector<std::int64_t>{8, 4});
  CHECK(made.training->targets(0) == 8);
  CHECK(made.training->targets(1) == 4);
  CHECK(all(*made.validation) == "lmnopqrs");  // the longest document goes on in another row, as if it began there
  CHECK(made.documents == 4);
  REQUIRE(made.notes.size() == 2);
  CHECK(made.notes[0] == "packing masked: 4 documents in 3 sequences of 8 tokens, 17 % of them padding");
  CHECK(made.notes[1].starts_with("1 document is longer than a sequence, and goes on in another one"));
  CHECK(made.sha256 != text({.path = path, .vocabulary = 256, .length = 8, .packing = Packing::none}).sha256);
}

TEST_CASE("text: what is in front of a sample's padding are its tokens, whether or not the loss counts them") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.bin");
  token::MarkedWriter writer(path, token::Layout::nanogpt, 256);
  for (int i = 0; i < 4; ++i) {  // conversations that end in a question
    writer.write({1, 2, 3, 4, 5}, {token::kBegins, token::kTrained, token::kTrained, 0, 0});
    writer.write({6, 7, 8}, {token::kBegins, token::kTrained, 0});
  }
  writer.commit();
  for (const auto& [packing, first, second] :
       {std::tuple(Packing::none, 4, 2), std::tuple(Packing::masked, 6, 6), std::tuple(Packing::whole, 7, 7)}) {
    const Split made = text({.path = path, .vocabulary = 256, .length = 7, .packing = packing});
    CHECK(read(*made.training, 0, 2).lengths == std::vector<std::int64_t>{first, second});
  }
}

TEST_CASE("text: packing none of token files needs the id that ends a document") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.bin");
  const auto write = [&](const std::vector<token::Id>& ids) {
    token::TokenWriter writer(path, token::Layout::nanogpt, 2000);
    writer.write(ids);
    writer.commit();
  };
  const auto tokenizer = token::open_tokenizer("tests/token/gpt2.json");
  const token::Id end = *tokenizer->end_of_text();
  write({end, 5, 6, 7, end, 8, 9, end, 10, 11, 12, end});  // with an end in front too, as llm.c writes them
  Text asked = {.path = path, .vocabulary = 2000, .length = 2, .packing = Packing::none};
  CHECK_THROWS_WITH_AS(text(asked), doctest::Contains("does not say which id ends a document: name its --tokenizer"),
                       Error);
  asked.tokenizer = "tests/token/gpt2.json";
  const Split made = text(asked);
  CHECK(made.documents == 3);
  CHECK(read(*made.training, 0, 4).tokens == std::vector<std::int64_t>{5, 6, 7, end, 8, 9, 10, 11});
  CHECK(read(*made.training, 0, 4).targets == std::vector<std::int64_t>{6, 7, end, kPadding, 9, end, 11, 12});
  write({5, 6, 7, 8, 9, 10, 11, 12});
  CHECK_THROWS_WITH_AS(text(asked), doctest::Contains("is not between documents"), Error);
}

TEST_CASE("text: through a tokenizer, whose ids must suit the model") {
  const TemporaryFolder folder;
  ::setenv("ZS_CACHE", folder.file("cache").c_str(), 1);
  const std::string path = folder.file("text");
  write_file(path, "the license and the license and the license");
  Text asked = {.path = path, .tokenizer = "tests/token/gpt2.json", .vocabulary = 1000, .length = 2};
  for (int again = 0; again < 2; ++again) {
    const Samples first = read(*text(asked).training, 0, 1);
    CHECK(token::open_tokenizer("tests/token/gpt2.json")
              ->decode({first.tokens.begin(), first.tokens.end()})
              .starts_with("the"));
  }
  asked.vocabulary = 50;
  CHECK_THROWS_WITH_AS(text(asked), doctest::Contains("text: through tests"), Error);
  ::unsetenv("ZS_CACHE");
}

}  // namespace
}  // namespace zs::data
