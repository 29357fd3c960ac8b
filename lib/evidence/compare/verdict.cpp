// SPDX-License-Identifier: Apache-2.0
#include "compare/verdict.hpp"

#include <array>

namespace zs::compare {

std::string_view name(const Settled& settled) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "exact",        "equal as printed", "within tolerance", "equal up to rounding",
      "inconclusive", "FAILED",           "DIFFERENT",        "not comparable"};
  return kNames[static_cast<std::size_t>(static_cast<Verdict>(settled))];
}

std::string_view consistency(const Settled& settled) {
  return settled == Verdict::exact ? "consistent" : settled == Verdict::different ? "INCONSISTENT" : "inconclusive";
}

Status status(const Settled& settled, bool allow_rounding) {
  switch (settled) {
    case Verdict::exact:
    case Verdict::printed:
    case Verdict::within:
      return Status::done;
    case Verdict::rounding:
      return allow_rounding ? Status::done : Status::no;
    case Verdict::failed:
    case Verdict::different:
      return Status::no;
    case Verdict::inconclusive:
    case Verdict::not_comparable:
      break;
  }
  return Status::inconclusive;
}

}  // namespace zs::compare
