// SPDX-License-Identifier: Apache-2.0
// Writes a probe of a training of zs in the format that share/probe/zs_probe uses for PyTorch, so that the two can
// be compared.
// Version 1 of the format, which has no sketches: FOLDER/rank-R.jsonl has one object a line: first {"zs_probe": 1,
// "rank", "world_size", "torch", "id": the name of this file, by which a copy is known}, then for each step {"step",
// "computed": the type that gradients are computed in or null, "loss", "targets": of each micro-batch how many target
// tokens the loss counts, "tensors": [{"name": "grad/NAME" or
// "param/NAME", "dtype", "of": elements of the whole, "shape", "begin", "count", "digest": 16 hex digits, "squares"}],
// "values": a safetensors file or null}, and last {"end": steps, "rank", "lines": of steps in this file, "every"}.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tracker/appended.hpp"

namespace zs::tracker {

/// The sum of bits(i) * weight(i % 65536) * factor(i / 65536), modulo 2^64, over a tensor's elements i from `begin` on;
/// the digests of its parts add up to that of the whole tensor.
std::uint64_t probe_digest(std::span<const float> values, std::int64_t begin);

/// The part of a tensor on this rank: "grad/NAME" or "param/NAME".
struct ProbedPart {
  std::string name;
  std::vector<std::int64_t> shape;  ///< of the whole tensor
  std::int64_t begin = 0;           ///< in row-major order
  std::span<const float> values{};
};

/// A rank's file of a probe.
class ProbeWriter {
 public:
  /// Creates FOLDER/rank-RANK.jsonl, or appends to it if its last step is
  /// not after the `done` steps of a resumed training. Throws zs::Error,
  /// with the remedy, if it is the record of another training.
  /// `computed`: the type that gradients are computed in, "BF16"; "" for that of the tensors.
  ProbeWriter(const std::string& folder, int rank, int ranks, const std::string& library, std::int64_t done,
              const std::string& computed = "");
  /// The file name for this rank's values of a step; pass it to step().
  std::string values_name(std::int64_t step) const;
  /// Records a step: the mean loss of this rank's micro-batches, the target tokens of each that the loss counts, and
  /// its tensors in the same order on every rank, including those of which it holds nothing. `values_file` is "" if no
  /// values are kept.
  void step(std::int64_t step, double loss, const std::vector<std::int64_t>& targets,
            const std::vector<ProbedPart>& parts, const std::string& values_file);
  /// Records how many steps were made, every `every`-th of them recorded.
  void end(std::int64_t steps, std::int64_t every);

 private:
  int rank_;
  const std::string computed_;
  std::int64_t lines_ = 0;  // number of steps recorded
  AppendedFile file_;
};

}  // namespace zs::tracker
