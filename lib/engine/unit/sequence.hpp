// SPDX-License-Identifier: Apache-2.0
// Sequences in chunks (Jacobs et al. 2023, DeepSpeed-Ulysses). Layers of single tokens are computed for one chunk of
// tokens at a time, attention for one block of heads at a time, over the whole sequences. The number of chunks equals
// the number of blocks. No computation's shape, and so no bit, depends on the distribution over ranks.
//
//            chunk 0   chunk 1   chunk 2   chunk 3                block 0   block 1   block 2   block 3
//   rank 0   [ all heads of half the tokens, ->  ]   attend()   [ all tokens of half the heads, ->  ]   of 2 ranks
//   rank 1                       [ ->            ]     <-->                         [ ->            ]
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "unit/tensor.hpp"

namespace zs::unit {

/// The heads of a block: with H heads in C chunks, H / C; or one head, which C / H blocks share. REQUIRES: one of H and
/// C divides the other.
constexpr std::int64_t heads_of_block(std::int64_t heads, std::int64_t chunks) {
  return heads < chunks ? 1 : heads / chunks;
}
/// The first of them.
constexpr std::int64_t first_head(std::int64_t block, std::int64_t heads, std::int64_t chunks) {
  return block * heads / chunks;
}

/// Whether the heads of queries, and the heads of keys and values that they share, can be divided into one block for
/// each chunk.
constexpr bool divides_heads(std::int64_t chunks, std::int64_t heads, std::int64_t shared) {
  return heads % chunks == 0 && (shared % chunks == 0 || chunks % shared == 0);
}

/// The chunks of each sequence that one rank has.
class Sequence {
 public:
  virtual ~Sequence() = default;
  /// All of them.
  virtual std::int64_t chunks() const = 0;

  /// Attention of own block number `block`, counted from 0, from parts [B, T, its heads * D] to [B, T, any width].
  using Attend = std::function<at::Tensor(std::size_t block, const std::vector<at::Tensor>& parts_BTX)>;
  /// Calls `attend` for every block of heads, and returns its results for this rank's chunks: `parts` has, for each
  /// chunk, several tensors [B, T/C, heads[p] * D]; the result has [B, T/C, width of all blocks] for each.
  /// Differentiable; a head that several blocks share gets the sum of their gradients, in the order of the blocks.
  /// COLLECTIVE: of the ranks that share the sequences; its backward too.
  virtual std::vector<at::Tensor> attend(const std::vector<std::vector<at::Tensor>>& parts,
                                         std::span<const std::int64_t> heads, const Attend& attend) const = 0;
  /// Small float32 tensors of one shape, one for each of this rank's chunks, of all chunks in their order. Without
  /// gradients. COLLECTIVE: as above.
  virtual std::vector<at::Tensor> of_all(const std::vector<at::Tensor>& local) const = 0;
};

}  // namespace zs::unit
