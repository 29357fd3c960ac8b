// SPDX-License-Identifier: Apache-2.0
// The words of every comparison in zs, and what each requires. What is compared: the values that training decides
// (records.hpp), the state digests, and the tensors of files (tensors.hpp); never times, memory, names or hosts.
//
//   exact              each value that either side has, the other has too, with the same bits: in each row by attempt,
//                      epoch, step and rank, in each element of each tensor. +0 and -0 are not the same bits, and two
//                      NaN are not if their payloads differ. At least one value was compared.
//   equal as printed   as exact, but a side was written with fewer digits than its numbers have: equal as far as the
//                      digits go.
//   within tolerance   as exact, but bits differ in floating-point values, and each of these holds
//                      |a - b| <= atol + rtol * |b|. Only where a tolerance was asked for; integers, truth values,
//                      shapes and types have none.
//   inconclusive       what both sides have is equal, but one has values that the other lacks (a column, a digest):
//   what
//                      was compared does not decide.
//   not comparable     the two are not meant to be equal: they differ in an attribute that decides what is computed
//                      (attribute/table.hpp). What differs is told all the same. Where they differ in arithmetic alone
//                      other bits are DIFFERENT, with the remark that they are expected.
//   FAILED             nothing is proved: a step that one side lacks, a value that is not finite (also on both sides,
//                      but for the norm of a step that both skipped), a run that failed, is dead, or did not reach its
//                      end, malformed lines, nothing in common.
//   DIFFERENT          a value differs, beyond the tolerance if there is one; or a tensor, a shape or a type does.
//
// The table of pairs of conditions (stat/divergence.hpp) has older names for three of them: identical is exact or equal
// as printed, incomplete is inconclusive or a missing step, and different is DIFFERENT or FAILED.
#pragma once
#include <string_view>

#include "base/error.hpp"

namespace zs::compare {

/// From the best to the worst: what several comparisons come to together is their maximum.
enum class Verdict { exact, printed, within, inconclusive, failed, different, not_comparable };

/// As it is printed: "exact", "equal as printed", "FAILED".
std::string_view name(Verdict verdict);

/// The exit status: 0 for the first three, 1 for FAILED and DIFFERENT, 3 where nothing is decided.
Status status(Verdict verdict);

/// Whether the verdict says that the two are equal: the first three do.
inline bool equal(Verdict verdict) { return verdict <= Verdict::within; }

}  // namespace zs::compare
