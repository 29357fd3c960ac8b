// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sentencepiece_processor.h>

#include <random>

#include "base/error.hpp"
#include "token/tokenizer.hpp"

namespace zs::token {

TEST_CASE("sentencepiece: a text that is cut for threads has the ids that the library gives for the whole") {
  std::mt19937 random(11);
  std::string text;
  const std::vector<std::string> words = {"the", "License",    " ",      "  ",   "\n", "\u2581",
                                          "a",   "1234",       "\u20AC", "\t",   "x ", " \n",
                                          "of",  "\U0001F600", " work",  "\xFF", "'"};
  while (text.size() < 300000) text += words[random() % words.size()] + (random() % 2 ? " " : "");
  std::string utf8;
  for (const char c : text) utf8 += c == '\xFF' ? "\uFFFD" : std::string(1, c);
  for (const char* path : {"tests/token/bpe.model", "tests/token/unigram.model"}) {
    sentencepiece::SentencePieceProcessor model;
    REQUIRE(model.Load(path).ok());
    std::vector<int> whole;
    REQUIRE(model.Encode(utf8, &whole).ok());
    const auto ids = open_sentencepiece(path)->encode({text, "", " the", "the work"}, 3);
    CHECK(ids[0] == std::vector<Id>(whole.begin(), whole.end()));
    CHECK(ids[1].empty());
    REQUIRE(model.Encode("the work", &whole).ok());
    CHECK(ids[3] == std::vector<Id>(whole.begin(), whole.end()));
  }
}

TEST_CASE("sentencepiece: a file that is no model is an error with its name") {
  CHECK_THROWS_WITH_AS(open_sentencepiece("lib/LAYERS"), doctest::Contains("lib/LAYERS: "), Error);
}

}  // namespace zs::token
