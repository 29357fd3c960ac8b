// SPDX-License-Identifier: Apache-2.0
// What share/probe/zs_probe.py records of a PyTorch training, of one of zs: the same files, so that the two are
// compared.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tracker/appended.hpp"

namespace zs::tracker {

/// The sum over elements i of bits(i) * weight(i % 65536) * factor(i / 65536), modulo 2^64, of the elements from place
/// `begin` of a tensor on; the digests of its parts add up to that of the whole.
std::uint64_t probe_digest(std::span<const float> values, std::int64_t begin);

/// What a rank holds of a tensor: "grad/NAME" or "param/NAME".
struct ProbedPart {
  std::string name;
  std::vector<std::int64_t> shape;  ///< of the whole
  std::int64_t begin = 0;           ///< in row-major order
  std::span<const float> values{};
};

/// A rank's file of a probe.
class ProbeWriter {
 public:
  /// Makes FOLDER/rank-RANK.jsonl, or goes on with it where its last step is none after the `done` steps that the
  /// training has made: it was resumed. Throws zs::Error, with the remedy, where there is the record of another
  /// training.
  ProbeWriter(const std::string& folder, int rank, int ranks, const std::string& library, std::int64_t done);
  /// The name of this rank's file for values of a step, which goes with step().
  std::string values_name(std::int64_t step) const;
  /// A step: the mean loss of this rank's micro-batches, and its tensors in the same order on every rank, also those of
  /// which it holds nothing. `values_file` "" where no values are kept.
  void step(std::int64_t step, double loss, const std::vector<ProbedPart>& parts, const std::string& values_file);
  /// How many steps were made, each `every`-th of which was recorded.
  void end(std::int64_t steps, std::int64_t every);

 private:
  int rank_;
  std::int64_t lines_ = 0;  // of steps
  AppendedFile file_;
};

}  // namespace zs::tracker
