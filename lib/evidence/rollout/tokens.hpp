// SPDX-License-Identifier: Apache-2.0
// The tokens of dumps that both a generator and a trainer have scored, in order of step, sequence and position.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/number.hpp"
#include "rolloutfile/dump.hpp"

namespace zs::rollout {

using rolloutfile::Dump;
using rolloutfile::Numbers;
using rolloutfile::Sequence;

struct Token {
  float gen = 0, train = 0;
  double entropy = kNan, raw = kNan, ref = kNan;  ///< NaN: not recorded
  std::size_t sequence = 0, position = 0;         ///< index in Tokens::sequences; place in the completion
  double d() const { return static_cast<double>(gen) - static_cast<double>(train); }
  /// 1 - p, for the less certain side: about the share of a change of the logits by which its log-probability moves.
  double free() const { return -std::expm1(static_cast<double>(std::min(gen, train))); }
  bool equal() const;  ///< in bits
};

/// Two sequences of one sample that are not the same.
struct Apart {
  std::string reason, where;
};

/// Tokens that count for one side alone, and the place of the first.
struct Masked {
  std::size_t tokens = 0;
  std::string first{};
};

struct Tokens {
  std::vector<Sequence> sequences{};  ///< with both sides
  std::vector<Token> counted{};       ///< those that count
  std::vector<std::string> alone{};  ///< sequences that only one side has: "step 3, sample 12 is only in the trainer's"
  std::vector<Apart> apart{};        ///< sequences whose token ids or prompts differ
  std::string lags{};                ///< sequences whose sides have other steps
  Masked trained{}, untrained{};     ///< that the trainer alone counts, that the generator alone counts
  std::size_t removed = 0;  ///< sequences that the trainer's mask leaves out whole, as a filter of samples does
  std::vector<std::string> above{};  ///< values above 0, of a side that has no log-probabilities
  std::vector<std::string> wild{};   ///< values that are not finite, with their place
  /// "step 2, sample 7, token 512 at position 3".
  std::string place(const Token& token) const;
};

/// Of one dump with both sides, or of a trainer's and a generator's, in any order. Sequences of two dumps belong
/// together by token ids, of equal ones those of the nearest step; what finds no partner, by step and sample. Throws
/// Error with the remedy if a side has no log-probabilities at all.
Tokens tokens_of(const Dump& a, const Dump* b);

}  // namespace zs::rollout
