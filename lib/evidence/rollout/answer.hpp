// SPDX-License-Identifier: Apache-2.0
// The result of zs-verify for log-probabilities of a generator and a trainer.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "compare/verdict.hpp"

namespace zs::rollout {

/// The figures show means of |d|.
struct Curves {
  std::map<std::int64_t, double> steps{}, positions{};  ///< a position stands for those up to the next one
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> versions{};  ///< by step: the oldest and the newest
  double bound = 0;                                                          ///< of the mean
};

struct Answer {
  compare::Settled verdict{};
  Curves curves{};
  bool ended = false;            ///< nothing is added to the dump any more, as far as it says
  compare::AnswerLines lines{};  ///< the verdict first
};

/// Reads a dump of both sides, or with `b` two of one side each. `floor`: the dump of a healthy training, whose
/// differences are the bound; or "". Throws Error, located, for a damaged dump and for one that lacks a side.
Answer compare(const std::string& a, const std::string& b, const std::string& floor);

/// Whether a recording is of a generator's weights.
bool of_generator(const std::string& folder);

/// Compares each version that the generator holds with the trainer's version of the same number. Says of each tensor
/// that differs how: never delivered, stale, transposed, permuted, another tensor's, without the adapter, scaled.
/// Throws Error, located, for a damaged recording.
Answer compare_weights(const std::string& trainer, const std::string& generator);

}  // namespace zs::rollout
