// SPDX-License-Identifier: Apache-2.0
// Writes the logits of an evaluation to a file, for comparisons.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "comm/group.hpp"
#include "unit/unit.hpp"

namespace zs::train {

/// Gathers the results of the ranks into an HDF5 file: float32 `logits`, [samples, tokens, vocabulary] or [samples,
/// labels], int64 `targets`, and of texts int64 `input_ids`, [samples, tokens], and int64 `sample`, [samples], in the
/// order of the samples. Kept in memory until commit().
class Logits {
 public:
  Logits(comm::Group& group, const std::string& path) : group_(group), path_(path) {}
  /// Adds a leaf's logits, on the rank that computed it. Throws zs::Error if they need too much memory.
  void add(std::int64_t leaf, const unit::Batch& batch, const at::Tensor& logits);
  /// Writes the file; the first sample has the number `first` in the data. Throws comm::SharedError. COLLECTIVE.
  void commit(std::int64_t first);

 private:
  struct Leaf {
    at::Tensor logits, targets, inputs;
  };
  comm::Group& group_;
  std::string path_;
  std::map<std::int64_t, Leaf> leaves_;
  std::uint64_t bytes_ = 0;  // of all ranks, approximately
};

}  // namespace zs::train
