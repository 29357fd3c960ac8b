// SPDX-License-Identifier: Apache-2.0
// Tensors of files, compared bit by bit in pieces: every element is judged, all that differ are counted, and memory
// does not grow with the files. Equal parts go at the speed of memory.
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
  std::string place;         ///< the same by axis: "[3, 17]"
  std::string a, b;          ///< shortest decimal text
  std::string a_hex, b_hex;  ///< "0x1.8p+1"; of what is no finite float the bits, "0x7fc00001"
  double absolute = 0;
  std::int64_t ulp = 0;  ///< of its own type; 0 for integers
};

struct Tensors {
  Settled verdict{};
  std::int64_t tensors = 0, elements = 0;  ///< compared
  std::int64_t values = 0;                 ///< compared as text: what is no tensor
  std::int64_t tensors_differing = 0;      ///< of these, in a bit, in shape or type
  std::int64_t differing = 0;              ///< elements of other bits
  std::int64_t refused = 0;                ///< of which the tolerance does not accept
  std::int64_t not_finite = 0;             ///< elements that are nan or infinite on a side
  std::optional<Element> first;            ///< the first refused
  std::optional<Element> non_finite;       ///< the first that is not finite on both sides alike
  Difference largest;                      ///< over all that differ
  std::string largest_at;                  ///< "transformer.wte.weight [3, 17]": where the ulp are most
  std::vector<std::string> unlike;         ///< "w has the shape [3] in A, [4] in B", "w is missing in B"
  std::vector<std::string> lacking;        ///< what leaves the comparison undecided: "n_head is missing in B"
};

/// Compares by name. `name_a` and `name_b` call the sides in messages. `skipped`: both sides are the gradients of a
/// step that the optimizer skipped, which need not be finite.
Tensors tensors(const Contents& held, const std::string& name_a, const std::string& name_b, const Tolerance& tolerance,
                bool skipped = false);

/// Compares tensors that were cut over ranks, each side in its own way. Elements that only one side has differ.
Tensors parts(const std::vector<Part>& a, const std::vector<Part>& b, const std::string& name_a,
              const std::string& name_b, const Tolerance& tolerance);

}  // namespace zs::compare
