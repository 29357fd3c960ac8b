// SPDX-License-Identifier: Apache-2.0
// Compares tensors that ranks divided, bit by bit in pieces: judges every element, counts all that differ, in constant
// memory.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compare/ledger.hpp"
#include "compare/measure.hpp"
#include "compare/verdict.hpp"
#include "tensorfile/tensor.hpp"

namespace zs::compare {

/// A part of a tensor that was divided among ranks, and the position where it begins.
struct Part {
  std::string name;  ///< "exp_avg.transformer.wte.weight"
  std::int64_t begin = 0;
  tensorfile::Tensor tensor;
};

/// The index of an element by axis: "[3, 17]".
std::string place_in(const tensorfile::Shape& shape, std::int64_t index);

/// One element that differs, or is not finite.
struct Element {
  std::string tensor;        ///< its name
  std::int64_t index = 0;    ///< row-major
  std::string place;         ///< the index by axis: "[3, 17]"
  std::string a, b;          ///< shortest decimal text
  std::string a_hex, b_hex;  ///< "0x1.8p+1"; if not finite, the bits: "0x7fc00001"
  double absolute = 0;
  std::int64_t ulp = 0;  ///< in units of its type; 0 for integers
};

struct Tensors {
  Settled verdict{};
  std::int64_t tensors = 0, elements = 0;  ///< compared
  std::int64_t tensors_differing = 0;      ///< of these: in bits, shape or type
  std::int64_t differing = 0;              ///< elements with different bits
  std::int64_t refused = 0;                ///< of these: outside the tolerance
  std::int64_t not_finite = 0;             ///< elements that are nan or infinite on one side
  std::optional<Element> first;            ///< the first refused
  std::optional<Element> non_finite;       ///< the first that is not finite but equal on both sides
  Difference largest;                      ///< over all that differ
  std::string largest_at;                  ///< "transformer.wte.weight [3, 17]": the place with the most ulp
  std::vector<std::string> unlike;         ///< "w from element 2 to 4 is missing in B"
};

/// Compares tensors that each side may divide differently among ranks. Elements of only one side differ.
Tensors parts(const std::vector<Part>& a, const std::vector<Part>& b, const std::string& name_a,
              const std::string& name_b, const Tolerance& tolerance);

}  // namespace zs::compare
