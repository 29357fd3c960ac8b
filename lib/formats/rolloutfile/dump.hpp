// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of a generator and a trainer for the same tokens, as systems of reinforcement learning dump them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace zs::rolloutfile {

/// A number for each token of a completion, in nats; empty: not recorded.
using Numbers = std::vector<float>;

/// A prompt and its completion. Vectors of the completion have one value for each of its tokens.
struct Sequence {
  std::int64_t step = 0;                   ///< -1: the form has no steps
  std::string sample;                      ///< its name in the dump: an index, a digest
  std::int64_t n = 0;                      ///< its index among equal prompts, or its place in the dump
  std::vector<std::int64_t> ids;           ///< of prompt and completion, without padding
  std::size_t prompt = 0;                  ///< tokens of the prompt
  std::vector<char> mask;                  ///< of the completion: whether a token counts; empty: all count
  Numbers gen, train, ref;                 ///< log-probability of each token by generator, trainer, reference model
  Numbers raw;                             ///< by the generator before temperature, top-k and top-p
  Numbers entropy;                         ///< of the trainer's distribution
  Numbers again;                           ///< the trainer's once more, with what it computes moved by rounding
  Numbers turn;                            ///< the turn of a conversation, from 0
  std::map<std::string, Numbers> replays;  ///< scores of the trainer under a variant: "adapter off"
  double temperature = 0, top_p = 0, min_p = 0;      ///< 0: not recorded
  std::int64_t top_k = 0, padded = -1, cached = -1;  ///< padded on the left, taken from a cache; -1: not recorded
  std::vector<std::pair<std::int64_t, std::string>> versions{};  ///< tokens, and the weights' version that made them

  std::size_t length() const { return ids.size() - prompt; }
  bool counts(std::size_t token) const { return mask.empty() || mask[token]; }
};

/// The content of a file or folder.
struct Dump {
  std::string path{}, system{};                    ///< "NeMo-RL"
  std::string generator_dtype{}, trainer_dtype{};  ///< "BF16"; "" if unknown
  std::string lacks{};                             ///< how to switch on what a system does not dump by default
  std::int64_t open = -1;  ///< parts that say that they begin and not yet that they end; -1: the form says neither
  std::vector<std::string> broken{};  ///< parts of a training that did not end well: "a/rollout-0.jsonl says ..."
  std::vector<Sequence> sequences{};  ///< by step, in the order of the files
};

}  // namespace zs::rolloutfile
