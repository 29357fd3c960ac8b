// SPDX-License-Identifier: Apache-2.0
// Compares the elements of two tensors with the same type and count.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "compare/measure.hpp"
#include "tensorfile/tensor.hpp"

namespace zs::compare {

struct Elements {
  std::int64_t compared = 0;
  std::int64_t differing = 0, refused = 0, not_finite = 0;
  std::int64_t first = -1;             ///< index of the first refused, row-major
  std::int64_t first_non_finite = -1;  ///< index of the first that is not finite and has the same bits on both sides
  std::int64_t furthest = -1;          ///< index of the one with the most ulp
  Difference largest{};
};

/// REQUIRES: dtype and count() are the same. Integers and truth values have no tolerance and no ulp.
Elements elements(const tensorfile::Tensor& a, const tensorfile::Tensor& b, const Tolerance& tolerance);

/// All elements of a tensor of real numbers, row-major; of complex ones the real parts.
std::vector<double> reals(const tensorfile::Tensor& tensor);

/// One element in decimal for people and in hexadecimal without loss: "0.1" and "0x1.99999ap-4".
struct Spelt {
  std::string decimal, hexadecimal;
  double value = 0;
  std::uint64_t bits = 0;
};
Spelt spelt(const tensorfile::Tensor& tensor, std::int64_t index);

/// The ulp distance of element `index` in two tensors of the same type; 0 for integers.
std::int64_t ulp_at(const tensorfile::Tensor& a, const tensorfile::Tensor& b, std::int64_t index);

}  // namespace zs::compare
