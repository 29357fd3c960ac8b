// SPDX-License-Identifier: Apache-2.0
// A tensor in a file or for one: an element type and a strided view of a Storage.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensorfile/dtype.hpp"
#include "tensorfile/storage.hpp"

namespace zs::tensorfile {

using Shape = std::vector<std::int64_t>;

struct Tensor {
  Dtype dtype = Dtype::f32;
  Shape shape;              ///< each >= 0; empty for a scalar
  Shape strides;            ///< in elements, as many as shape; row-major if contiguous
  std::int64_t offset = 0;  ///< first element, in elements of the storage
  StoragePtr storage;

  /// The product of the shape.
  std::int64_t count() const;
  std::uint64_t byte_count() const { return static_cast<std::uint64_t>(count()) * size_of(dtype); }
  /// Whether the elements are in row-major order without gaps.
  bool contiguous() const;
  /// Throws Error unless the view is sound: sizes and strides >= 0, no overflow, all elements inside the storage. The
  /// readers call it; REQUIRES: code that builds a Tensor from untrusted numbers calls it, too.
  void check() const;
};

/// Row-major strides of `shape`.
Shape row_major(const Shape& shape);

/// A contiguous tensor over all of `storage`. Throws Error if the sizes do not match.
Tensor make_tensor(Dtype dtype, Shape shape, StoragePtr storage);

/// A contiguous tensor over values of the caller, who must keep them while the tensor is in use.
Tensor borrow_f32(Shape shape, std::span<const float> values);

/// Whether type, shape and every element are the same, whatever the strides.
bool same_bits(const Tensor& a, const Tensor& b);

/// "[2, 3]", for messages.
std::string to_text(const Shape& shape);

/// Passes the elements' bytes in row-major order to `sink`, for any strides. An Error begins with `place`.
void stream(const Tensor& tensor, const Sink& sink, const std::string& place = "");

/// The elements as f32, row-major. Exact from bf16, f16, f32, bool and the 8 and 16 bit integers; rounded to nearest
/// from f64 and the wider integers. Throws Error for complex and f8 tensors, and unless to.size() == count().
void read_f32(const Tensor& tensor, std::span<float> to);
/// Like the one above, for to.size() elements from index `first` on, to read a tensor of any size in pieces. Throws
/// Error if the tensor has fewer.
void read_f32(const Tensor& tensor, std::int64_t first, std::span<float> to);

/// The elements' bytes unchanged, row-major. Throws Error unless to.size() == byte_count().
void read_raw(const Tensor& tensor, std::span<char> to);

}  // namespace zs::tensorfile
