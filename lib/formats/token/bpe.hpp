// SPDX-License-Identifier: Apache-2.0
// Byte-level byte pair encoding: a word's bytes are tokens, and neighbours merge in the order of their ranks.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace zs::token {

using Id = std::uint32_t;

/// Pairs of ids and what they merge into: a table for look-ups in the innermost loop.
class Merges {
 public:
  struct Merge {
    std::uint32_t rank = kNone;
    Id id = 0;
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;  ///< the rank of a pair that does not merge

  explicit Merges(std::size_t count);
  /// A pair that was added before gets the new merge. REQUIRES: at most `count` pairs are added.
  void add(Id left, Id right, Merge merge);
  Merge find(Id left, Id right) const;

 private:
  struct Slot {
    std::uint64_t pair = 0;
    Merge merge{};
  };
  std::vector<Slot> slots_;
  int shift_;
  Slot& slot(std::uint64_t pair);
};

/// What a byte-level BPE is made of. Words are bytes, not the letters that tokenizer.json writes for them.
struct Bpe {
  Merges merges{0};
  std::array<std::optional<Id>, 256> bytes{};   ///< the token of each byte
  std::unordered_map<std::string, Id> words{};  ///< whole words that are one token whatever the merges say
  std::optional<Id> unknown{};                  ///< stands for a byte that has no token
  bool fuse_unknown = false;                    ///< for a row of them, one

  /// The ids of a word, added to `ids`. Throws Error at a byte that has no token where nothing stands for it.
  void encode(std::string_view word, std::vector<Id>& ids) const;
};

/// The same, with a memory of words that were seen; for one thread.
class CachedBpe {
 public:
  /// REQUIRES: `bpe` outlives it. `lines` is a power of two.
  CachedBpe(const Bpe& bpe, std::size_t lines);
  void encode(std::string_view word, std::vector<Id>& ids);

 private:
  // A line of the processor's cache for a word; most words and their tokens are that short.
  struct alignas(64) Line {
    std::array<char, 31> word{};
    std::uint8_t size = 0;  // 0: nothing is here
    std::uint32_t count = 0;
    std::array<Id, 7> ids{};
  };
  const Bpe* bpe_;
  std::vector<Line> lines_;
};

}  // namespace zs::token
