// SPDX-License-Identifier: Apache-2.0
// Measures tensors as zs_probe does, by the same code (share/probe/zs_probe/native.c): digest, sum of squares and
// sketch, as share/probe/zs_probe/sketch.py defines them. All three add up over the parts of a tensor.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensorfile/dtype.hpp"

namespace zs::probefile {

/// The part of a tensor on this rank: elements that follow each other in row-major order.
struct Held {
  std::string name{};                 ///< "grad/NAME", "state.exp_avg/NAME"; of a micro-batch's gradient "NAME"
  std::vector<std::int64_t> shape{};  ///< of the whole tensor
  std::int64_t begin = 0;             ///< place of the first element in it
  std::string_view values{};          ///< the elements' bytes
  tensorfile::Dtype dtype = tensorfile::Dtype::f32;
  int micro = -1, by = 0;  ///< the micro-batch, and the data-parallel rank that has it; -1: none
  std::int64_t count() const { return static_cast<std::int64_t>(values.size() / tensorfile::size_of(dtype)); }
};

/// The JSON objects of tensors for a recording, joined by commas. Uses up to `threads` threads; no number depends on
/// them. REQUIRES: f32, f64, bf16 or f16.
std::string rows(std::span<const Held> parts, int threads);

/// Moves each number that is not zero by one unit in the last place, up or down as `seed`, the parameter's name and the
/// number's place in it say, from `begin` on: as sketch.py does.
void perturb(std::span<float> values, std::int64_t begin, std::uint64_t seed, std::string_view name);

/// Numbers of all samples of a micro-batch, sample by sample.
struct Samples {
  const void* values = nullptr;
  tensorfile::Dtype dtype = tensorfile::Dtype::i64;  ///< i64 or f32
  std::int64_t numbers = 0;                          ///< of each sample
};

/// A digest of each of `count` samples, over all tensors that a model takes of a micro-batch, in their order.
std::vector<std::uint64_t> sample_digests(std::int64_t count, std::span<const Samples> tensors);

}  // namespace zs::probefile
