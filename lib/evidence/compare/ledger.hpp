// SPDX-License-Identifier: Apache-2.0
// The rule of every comparison. A comparison is a list of things that either side holds: steps, losses, tensors,
// columns, files. A reader lists what it read before anything is compared; `exact` requires that each thing is held by
// both sides, compared, and equal. A thing that a comparison forgets stays on the list, so the result cannot be exact.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compare/verdict.hpp"

namespace zs::compare {

enum class Holder { a, b };

/// The things of one side, as its reader lists them: the count of each.
class Holdings {
 public:
  /// `count` 0 lists a thing without values, for example a tensor without elements.
  void add(const std::string& thing, std::int64_t count = 1) { counts_[thing] += count; }
  const std::map<std::string, std::int64_t>& counts() const { return counts_; }

 private:
  std::map<std::string, std::int64_t> counts_;
};

class Ledger {
 public:
  Ledger(const Holdings& a, const Holdings& b);

  /// `count` pairs of values of a thing were compared; `outcome` is the worst result: failed for
  /// a value that is not finite, inconclusive for one that differs by an unknown amount.
  void compared(const std::string& thing, Verdict outcome, std::int64_t count = 1) {
    compared(thing, outcome, count, count);
  }
  /// The same if several values of one side have one partner.
  void compared(const std::string& thing, Verdict outcome, std::int64_t count_a, std::int64_t count_b);
  /// A rule explains why only this side holds `count` of a thing: it records every step, the other every tenth.
  void excuse(Holder holder, const std::string& thing, std::int64_t count = 1);
  void at_least(Verdict verdict);

  /// A thing that only one side holds, or that was not compared: "grad/w: A holds 4, B holds 2".
  struct Open {
    std::string thing;
    std::int64_t a = 0, b = 0;  ///< held
    std::int64_t compared = 0;  ///< the smaller count of the two sides
  };
  std::vector<Open> open() const;

  /// Throws Error if more was compared than is held: the reader's list is incomplete.
  Settled settle() const;

 private:
  struct Account {
    std::int64_t held = 0, settled = 0, compared = 0;  ///< settled: compared or excused
  };
  struct Thing {
    Account a, b;
    Verdict worst = Verdict::exact;
    bool closed() const { return a.settled == a.held && b.settled == b.held; }
  };
  std::map<std::string, Thing> things_;
  Verdict least_ = Verdict::exact;
};

}  // namespace zs::compare
