// SPDX-License-Identifier: Apache-2.0
// Compares tensors of files bit by bit in pieces: judges every element, counts all that differ, in constant memory.
// Equal parts are compared at the speed of memory.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compare/content.hpp"
#include "compare/ledger.hpp"
#include "compare/measure.hpp"
#include "compare/verdict.hpp"

namespace zs::compare {

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
  std::int64_t values = 0;                 ///< compared as text: values that are no tensors
  std::int64_t tensors_differing = 0;      ///< of these: in bits, shape or type
  std::int64_t differing = 0;              ///< elements with different bits
  std::int64_t refused = 0;                ///< of these: outside the tolerance
  std::int64_t not_finite = 0;             ///< elements that are nan or infinite on one side
  std::optional<Element> first;            ///< the first refused
  std::optional<Element> non_finite;       ///< the first that is not finite but equal on both sides
  Difference largest;                      ///< over all that differ
  std::string largest_at;                  ///< "transformer.wte.weight [3, 17]": the place with the most ulp
  std::vector<std::string> unlike;         ///< "w has the shape [3] in A, [4] in B", "w is missing in B"
  std::vector<std::string> lacking;        ///< why the result is inconclusive: "n_head is missing in B"
};

/// Compares by name. Messages call the sides `name_a` and `name_b`. `skipped`: both sides are the gradients of a step
/// that the optimizer skipped, which need not be finite.
Tensors tensors(const Contents& held, const std::string& name_a, const std::string& name_b, const Tolerance& tolerance,
                bool skipped = false);

/// Compares tensors that each side may divide differently among ranks. Elements of only one side differ.
Tensors parts(const std::vector<Part>& a, const std::vector<Part>& b, const std::string& name_a,
              const std::string& name_b, const Tolerance& tolerance);

}  // namespace zs::compare
