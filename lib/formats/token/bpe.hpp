// SPDX-License-Identifier: Apache-2.0
// Byte-level byte pair encoding: a word's bytes are tokens, and adjacent tokens merge in the order of their ranks.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace zs::token {

using Id = std::uint32_t;

/// Pairs of ids and their merged ids: a hash table for the innermost loop.
class Merges {
 public:
  struct Merge {
    std::uint32_t rank = kNone;
    Id id = 0;
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;  ///< the rank of a pair that does not merge

  explicit Merges(std::size_t count);
  /// A repeated pair gets the new merge. REQUIRES: at most `count` pairs are added.
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

/// A byte-level BPE. Words are bytes; tokenizer.json has them as characters that represent bytes.
struct Bpe {
  Merges merges{0};
  std::array<std::optional<Id>, 256> bytes{};   ///< the token of each byte
  std::unordered_map<std::string, Id> words{};  ///< whole words that are one token regardless of the merges
  std::optional<Id> unknown{};                  ///< replaces a byte that has no token
  bool fuse_unknown = false;                    ///< one unknown token for a row of them

  /// Appends the ids of a word to `ids`. Throws Error at a byte without a token if there is no `unknown`.
  void encode(std::string_view word, std::vector<Id>& ids) const;
};

/// The same with a cache of words; for one thread.
class CachedBpe {
 public:
  /// REQUIRES: `bpe` outlives it. `lines` is a power of two.
  CachedBpe(const Bpe& bpe, std::size_t lines);
  void encode(std::string_view word, std::vector<Id>& ids);

 private:
  // A cache line per word; most words and their tokens fit.
  struct alignas(64) Line {
    std::array<char, 31> word{};
    std::uint8_t size = 0;  // 0: empty
    std::uint32_t count = 0;
    std::array<Id, 7> ids{};
  };
  const Bpe* bpe_;
  std::vector<Line> lines_;
};

}  // namespace zs::token
