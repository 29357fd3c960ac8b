// SPDX-License-Identifier: Apache-2.0
#include "compare/verdict.hpp"

#include <array>

namespace zs::compare {

std::string_view name(Verdict verdict) {
  static constexpr std::array<std::string_view, 7> kNames = {
      "exact", "equal as printed", "within tolerance", "inconclusive", "FAILED", "DIFFERENT", "not comparable"};
  return kNames[static_cast<std::size_t>(verdict)];
}

Status status(Verdict verdict) {
  if (equal(verdict)) return Status::done;
  return verdict == Verdict::failed || verdict == Verdict::different ? Status::no : Status::inconclusive;
}

}  // namespace zs::compare
