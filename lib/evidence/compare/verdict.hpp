// SPDX-License-Identifier: Apache-2.0
// The verdicts of every comparison in zs, and their conditions. Compared are the values that training determines
// (records.hpp), state digests, the tensors of files (tensors.hpp), and the content of recordings (probe/account.hpp);
// never times, memory, names or hosts.
//
//   exact              each thing that either side holds, the other holds too, with the same bits: in each row by
//                      attempt, epoch, step and rank, in each element of each tensor. +0 and -0 are not the same bits,
//                      and two NaN are not if their payloads differ. At least one value was compared.
//   equal as printed   as exact, but a side was written with fewer digits than its numbers have: equal as far as the
//                      digits go.
//   within tolerance   as exact, but bits differ in floating-point values, and each of these holds
//                      |a - b| <= atol + rtol * |b|. Only if a tolerance was given; integers, truth values, shapes
//                      and types have none.
//   equal up to rounding  of two probes: bits differ, and each difference is shown to be one that another order of the
//                      same sums leaves (probe/bounds.hpp).
//   inconclusive       what both sides have is equal, but one has something that the other lacks: a column, a digest, a
//                      file, the gradients. Or bits differ, and nothing recorded shows by how much.
//   not comparable     the two are not meant to be equal: they differ in an attribute that decides what is computed
//                      (attribute/table.hpp). Differences are reported all the same. If they differ only in arithmetic,
//                      other bits are DIFFERENT, with a note that they are expected.
//   FAILED             nothing is proved: a step that one side lacks, a value that is not finite (also on both sides,
//                      except the norm of a step that both skipped), a run that failed, is dead, or did not reach its
//                      end, malformed lines, nothing in common, a copy.
//   DIFFERENT          a value differs, beyond the tolerance if there is one; or a tensor, a shape or a type does.
//
// The table of pairs of conditions (stat/divergence.hpp) has older names for three of them: identical is exact or equal
// as printed, incomplete is inconclusive or a missing step, and different is DIFFERENT or FAILED.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace zs::compare {

/// From the best to the worst: the verdict of several comparisons is their maximum.
enum class Verdict { exact, printed, within, rounding, inconclusive, failed, different, not_comparable };

/// The verdict of a comparison. Only Ledger::settle() makes a verdict that means "equal"; any code may make it worse.
/// Only a Settled has a name and an exit status: "exact" is never printed without a ledger.
class Settled {
 public:
  /// FAILED: nothing is proved yet.
  Settled() = default;
  operator Verdict() const { return verdict_; }  // implicit: read as a Verdict
  /// Sets the worse of the current verdict and `verdict`.
  void worsen(Verdict verdict) { verdict_ = std::max(verdict_, verdict); }

 private:
  friend class Ledger;
  explicit Settled(Verdict verdict) : verdict_(verdict) {}
  Verdict verdict_ = Verdict::failed;
};

/// The printed word: "exact", "equal as printed", "FAILED".
std::string_view name(const Settled& settled);

/// The printed word for one recording, which is compared with itself: "consistent", "INCONSISTENT", "inconclusive".
std::string_view consistency(const Settled& settled);

/// The exit status: 0 for exact, as printed and within tolerance, 1 for FAILED and DIFFERENT, 3 if undecided. Equal up
/// to rounding is 1, or 0 if the user allows rounding.
Status status(const Settled& settled, bool allow_rounding = false);

/// Whether the verdict means equal: exact, as printed, within tolerance.
inline bool equal(const Settled& settled) { return settled <= Verdict::within; }

/// The lines of a verdict: key and text, as zs-verify prints them.
using AnswerLines = std::vector<std::pair<std::string, std::string>>;

/// The text of the first of these lines that there is; "" if there is none.
inline std::string line_of(const AnswerLines& lines, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const auto found = std::ranges::find(lines, key, [](const auto& line) { return std::string_view(line.first); });
    if (found != lines.end() && !found->second.empty()) return found->second;
  }
  return "";
}

}  // namespace zs::compare
