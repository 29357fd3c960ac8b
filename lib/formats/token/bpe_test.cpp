// SPDX-License-Identifier: Apache-2.0
#include "token/bpe.hpp"

#include <doctest/doctest.h>

#include <random>

#include "base/error.hpp"

namespace zs::token {
namespace {

/// The definition, word for word: the lowest rank of all neighbours, of several the leftmost, until none is left.
std::vector<Id> by_definition(const Bpe& bpe, const std::string& word) {
  std::vector<Id> ids;
  for (const char c : word) ids.push_back(*bpe.bytes[static_cast<unsigned char>(c)]);
  while (true) {
    std::size_t best = ids.size();
    Merges::Merge merge;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const Merges::Merge found = bpe.merges.find(ids[i], ids[i + 1]);
      if (found.rank < merge.rank) best = i, merge = found;
    }
    if (best == ids.size()) return ids;
    ids[best] = merge.id;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

/// Bytes are their own ids; `count` merges of tokens that there are by then.
Bpe drawn(std::mt19937& random, std::uint32_t count) {
  Bpe bpe;
  bpe.merges = Merges(count);
  for (Id byte = 0; byte < 256; ++byte) bpe.bytes[byte] = byte;
  std::vector<Id> tokens = {'a', 'b', 'c'};
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    const Id left = tokens[random() % tokens.size()], right = tokens[random() % tokens.size()];
    bpe.merges.add(left, right, {rank, 256 + rank});
    tokens.push_back(256 + rank);
  }
  return bpe;
}

}  // namespace

TEST_CASE("bpe: short and long words merge by the definition, with a memory of words and without") {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    const Bpe bpe = drawn(random, 1 + random() % 60);
    CachedBpe cached(bpe, 4);  // so few lines that words push one another out
    for (const std::size_t size : {1, 2, 3, 7, 20, 31, 32, 63, 64, 65, 66, 200, 700}) {
      std::string word;
      while (word.size() < size) word += static_cast<char>('a' + random() % 3);
      const std::vector<Id> right = by_definition(bpe, word);
      std::vector<Id> ids, first, again;
      bpe.encode(word, ids);
      cached.encode(word, first);
      cached.encode(word, again);
      REQUIRE(ids == right);
      REQUIRE(first == right);
      REQUIRE(again == right);
    }
  }
}

TEST_CASE("bpe: a byte without a token is unknown, one for each or one for a row of them, or an error") {
  Bpe bpe;
  bpe.bytes['a'] = 1;
  std::vector<Id> ids;
  CHECK_THROWS_AS(bpe.encode("ab", ids), Error);
  bpe.unknown = 9;
  ids.clear();
  bpe.encode("abbab", ids);
  CHECK(ids == std::vector<Id>{1, 9, 9, 1, 9});
  bpe.fuse_unknown = true;
  ids.clear();
  bpe.encode("abbab", ids);
  CHECK(ids == std::vector<Id>{1, 9, 1, 9});
}

TEST_CASE("bpe: a whole word counts before the merges") {
  Bpe bpe;
  bpe.bytes['a'] = 1;
  bpe.words["aa"] = 5;
  std::vector<Id> ids;
  bpe.encode("aa", ids);
  bpe.encode("aaa", ids);
  CHECK(ids == std::vector<Id>{5, 1, 1, 1});
}

}  // namespace zs::token
