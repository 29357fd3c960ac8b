// SPDX-License-Identifier: Apache-2.0
// A tensor of a checkpoint whose parts may be in several files.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tensorfile/tensor.hpp"

namespace zs::checkpoints {

/// A part of a tensor in one file: a run of elements in row-major order, or a box.
struct Piece {
  tensorfile::Tensor tensor{};  ///< mapped
  std::int64_t begin = 0;       ///< of a run: its first element in the whole
  tensorfile::Shape at{};       ///< of a box: its first index in each dimension; empty for a run
  int rank = -1;                ///< the rank of its file; -1: no rank
  std::string file{};           ///< relative to the checkpoint's folder
};

/// A tensor that may be divided among files.
struct Whole {
  tensorfile::Dtype dtype = tensorfile::Dtype::f32;
  tensorfile::Shape shape{};
  std::vector<Piece> pieces{};

  std::int64_t count() const;
  std::uint64_t bytes() const { return static_cast<std::uint64_t>(count()) * tensorfile::size_of(dtype); }
};

/// What two tensors have in common that are one under two names: bytes, type, first element and layout.
using View =
    std::tuple<const tensorfile::Storage*, tensorfile::Dtype, std::int64_t, tensorfile::Shape, tensorfile::Shape>;
View view_of(const tensorfile::Tensor& tensor);

/// The complete tensor of one file.
Whole whole(const tensorfile::Tensor& tensor, const std::string& file, int rank = -1);
/// Adds a box at these indices; a box of contiguous elements becomes a run.
void add_box(Whole& into, Piece piece);

/// Why the pieces do not form the whole: "no file has elements 12 to 23", "two files have elements 0 to 5: a, b", "is
/// of f32 in a, of bf16 in b"; "" if they do.
std::string defect(const Whole& whole);
/// The tensor: mapped if it is one piece, else in memory. Throws Error, which begins with `name`, at a defect.
tensorfile::Tensor joined(const Whole& whole, std::string_view name);
/// Its bytes, row-major.
std::string joined_bytes(const Whole& whole, std::string_view name);
/// A tensor whose bytes are read when it is written. Throws as joined().
tensorfile::Tensor streamed(const Whole& whole, std::string_view name);

}  // namespace zs::checkpoints
