// SPDX-License-Identifier: Apache-2.0
// A micro-batch, and the documents in it.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "unit/tensor.hpp"

namespace zs::unit {

/// The documents of packed samples, which do not see each other; empty if each sample is one.
struct Documents {
  std::vector<std::int64_t> begins{};  ///< each one's first token in the B*T tokens of a micro-batch; ascending from 0
  at::Tensor positions{};              ///< int64 [B, T]: the position of each token in its document
  at::Tensor sizes{};                  ///< int64 [B, T]: the tokens of its document

  explicit operator bool() const { return !begins.empty(); }
};

/// One micro-batch: the input of the first unit, and the targets of the last one. For a language model int64 [B, T], B
/// samples of T tokens, the targets one token later; for a classifier of images float32 [B, 3, S, S], and int64 [B].
struct Batch {
  at::Tensor inputs, targets;
  /// Set if negative targets are padding, which the loss ignores: the factor of the mean over the others, so that the
  /// mean of all micro-batches is the mean over all counted targets.
  std::optional<float> weight{};
  Documents documents{};   ///< a document does not cross samples
  std::int64_t first = 0;  ///< position of the first tokens in their samples; of a chunk more than 0
  std::int64_t whole = 0;  ///< tokens of each sample where the inputs are a part of it; 0: they are all
  /// int64 [B]: the tokens of each sample in front of its padding; of a chunk, those in it. A token without a target
  /// may be one of them: the targets do not say it. Undefined: there is no padding.
  at::Tensor lengths{};
  std::int64_t samples() const { return inputs.size(0); }
  Batch to(const at::Device& device) const;
  /// Chunk `number` of `chunks` equal ones of each sample, as a micro-batch: with the positions of its tokens, and with
  /// the beginnings of documents in the whole samples. REQUIRES: chunks divides the tokens of a sample.
  Batch chunk(std::int64_t number, std::int64_t chunks) const;
};

/// Documents with these first tokens, in consecutive samples of `length`.
Documents documents(std::vector<std::int64_t> begins, std::int64_t samples, std::int64_t length);

}  // namespace zs::unit
