// SPDX-License-Identifier: Apache-2.0
// The context of a forward of a unit, and its chunks.
#pragma once
#include <cstdint>
#include <span>

#include "unit/batch.hpp"
#include "unit/expert_ranks.hpp"

namespace zs::unit {

/// The context of a forward besides its inputs. Random streams depend on the leaf and the unit, not on the rank.
struct ForwardContext {
  const Batch& batch;
  std::uint64_t stream = 0;      ///< key of (seed, step, leaf)
  bool training = true;          ///< false disables dropout and the experts' auxiliary loss
  at::Tensor* logits = nullptr;  ///< if not null, the last unit stores the logits of its loss, [B, T, V] or [B, L]
  /// A running sum next to the output, float32 and differentiable: a unit gets the sum of the units before it,
  /// undefined for the first ones, and may add a term. Null: this forward has no such sum.
  at::Tensor* beside = nullptr;

  /// The ranks among which the unit's experts are divided: `owned` are this rank's, once for each leaf. Null: `owned`
  /// are all, once.
  const ExpertRanks* experts = nullptr;

  std::span<const std::int64_t> document_begins() const { return batch.documents.begins; }
};

/// The arguments of a forward of one chunk.
struct Chunk {
  at::Tensor x;
  std::span<const at::Tensor> owned, borrowed;
  ForwardContext context;
};

}  // namespace zs::unit
