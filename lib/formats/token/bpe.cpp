// SPDX-License-Identifier: Apache-2.0
#include "token/bpe.hpp"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <queue>

#include "base/error.hpp"
#include "base/number.hpp"

namespace zs::token {
namespace {

constexpr std::uint64_t kFree = UINT64_MAX;

std::uint64_t pair_of(Id left, Id right) { return static_cast<std::uint64_t>(left) << 32 | right; }

/// For short words: looks at all pairs after every merge.
void merge_short(const Merges& merges, std::vector<Id>& word) {
  thread_local std::vector<Merges::Merge> found;
  found.clear();
  for (std::size_t i = 0; i + 1 < word.size(); ++i) found.push_back(merges.find(word[i], word[i + 1]));
  while (!found.empty()) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < found.size(); ++i) {
      if (found[i].rank < found[best].rank) best = i;
    }
    if (found[best].rank == Merges::kNone) return;
    word[best] = found[best].id;
    word.erase(word.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    found.erase(found.begin() + static_cast<std::ptrdiff_t>(best));
    if (best > 0) found[best - 1] = merges.find(word[best - 1], word[best]);
    if (best < found.size()) found[best] = merges.find(word[best], word[best + 1]);
  }
}

/// For long words: a heap of pairs and a linked list of tokens.
void merge_long(const Merges& merges, std::vector<Id>& word) {
  struct Candidate {
    std::uint32_t rank;
    std::size_t at;
    Id id;
    bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };
  constexpr std::size_t kEnd = SIZE_MAX;
  const std::size_t size = word.size();
  std::vector<std::size_t> previous(size), next(size);
  std::vector<bool> gone(size);
  std::priority_queue<Candidate> heap;
  const auto consider = [&](std::size_t at) {
    if (at == kEnd || next[at] == kEnd) return;
    const Merges::Merge merge = merges.find(word[at], word[next[at]]);
    if (merge.rank != Merges::kNone) heap.push({merge.rank, at, merge.id});
  };
  for (std::size_t i = 0; i < size; ++i) {
    previous[i] = i == 0 ? kEnd : i - 1;
    next[i] = i + 1 == size ? kEnd : i + 1;
  }
  for (std::size_t i = 0; i < size; ++i) consider(i);
  while (!heap.empty()) {
    const Candidate top = heap.top();
    heap.pop();
    if (gone[top.at] || next[top.at] == kEnd) continue;
    const std::size_t right = next[top.at];
    const Merges::Merge merge = merges.find(word[top.at], word[right]);
    if (merge.rank != top.rank) continue;  // was merged since
    word[top.at] = merge.id;
    gone[right] = true;
    next[top.at] = next[right];
    if (next[right] != kEnd) previous[next[right]] = top.at;
    consider(previous[top.at]);
    consider(top.at);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (!gone[i]) word[kept++] = word[i];
  }
  word.resize(kept);
}

}  // namespace

Merges::Merges(std::size_t count) : slots_(std::bit_ceil(2 * count + 2)), shift_(64 - std::countr_zero(slots_.size())) {
  for (Slot& slot : slots_) slot.pair = kFree;
}

Merges::Slot& Merges::slot(std::uint64_t pair) {
  std::size_t at = pair * 0x9E3779B97F4A7C15U >> shift_;
  while (slots_[at].pair != pair && slots_[at].pair != kFree) at = (at + 1) & (slots_.size() - 1);
  return slots_[at];
}

void Merges::add(Id left, Id right, Merge merge) {
  const std::uint64_t pair = pair_of(left, right);
  slot(pair) = {pair, merge};
}

Merges::Merge Merges::find(Id left, Id right) const {
  // A free slot's merge is the one of no rank.
  return const_cast<Merges*>(this)->slot(pair_of(left, right)).merge;
}

void Bpe::encode(std::string_view word, std::vector<Id>& ids) const {
  if (const auto whole = words.empty() ? words.end() : words.find(std::string(word)); whole != words.end()) {
    ids.push_back(whole->second);
    return;
  }
  thread_local std::vector<Id> tokens;
  tokens.clear();
  bool fused = false;
  for (const char c : word) {
    const std::optional<Id>& id = bytes[static_cast<unsigned char>(c)];
    if (!id && !unknown) {
      throw Error("the byte 0x" + to_hex(std::string_view(&c, 1)) +
                  " has no token, and the tokenizer has no token for unknown text");
    }
    if (id || !fused) tokens.push_back(id ? *id : *unknown);
    fused = !id && fuse_unknown;
  }
  constexpr std::size_t kShort = 64;
  (tokens.size() <= kShort ? merge_short : merge_long)(merges, tokens);
  ids.insert(ids.end(), tokens.begin(), tokens.end());
}

CachedBpe::CachedBpe(const Bpe& bpe, std::size_t lines) : bpe_(&bpe), lines_(lines) {}

void CachedBpe::encode(std::string_view word, std::vector<Id>& ids) {
  if (word.size() > Line{}.word.size()) return bpe_->encode(word, ids);
  Line& line = lines_[XXH3_64bits(word.data(), word.size()) & (lines_.size() - 1)];
  if (line.size != word.size() || std::memcmp(line.word.data(), word.data(), word.size()) != 0) {
    const std::size_t before = ids.size();
    bpe_->encode(word, ids);
    if (ids.size() - before > line.ids.size()) return;
    line.size = static_cast<std::uint8_t>(word.size());
    std::copy(word.begin(), word.end(), line.word.begin());
    line.count = static_cast<std::uint32_t>(ids.size() - before);
    std::copy(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end(), line.ids.begin());
    return;
  }
  ids.insert(ids.end(), line.ids.begin(), line.ids.begin() + line.count);
}

}  // namespace zs::token
