// SPDX-License-Identifier: Apache-2.0
// The one rule of every comparison. A comparison is a list of things that either side holds: steps, losses, tensors,
// columns, files. A reader lists what it read before anything is compared; `exact` needs each thing held by both sides,
// compared, and equal. What a comparison forgets stays on the list and cannot be exact.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compare/verdict.hpp"

namespace zs::compare {

enum class Holder { a, b };

/// What one side holds, as its reader lists it: how many of each thing.
class Holdings {
 public:
  /// `count` 0 lists a thing without values, such as a tensor without elements.
  void add(const std::string& thing, std::int64_t count = 1) { counts_[thing] += count; }
  const std::map<std::string, std::int64_t>& counts() const { return counts_; }

 private:
  std::map<std::string, std::int64_t> counts_;
};

class Ledger {
 public:
  Ledger(const Holdings& a, const Holdings& b);

  /// So many of a thing were compared with as many of the other side, and the worst of them came to `outcome`: failed
  /// is a value that is not finite, inconclusive one that differs by nobody knows how much.
  void compared(const std::string& thing, Verdict outcome, std::int64_t count = 1) {
    compared(thing, outcome, count, count);
  }
  /// The same where several of one side have one partner.
  void compared(const std::string& thing, Verdict outcome, std::int64_t count_a, std::int64_t count_b);
  /// A rule explains why only this side holds so many of a thing: it records every step, the other every tenth.
  void excuse(Holder holder, const std::string& thing, std::int64_t count = 1);
  /// The verdict is at least as bad.
  void at_least(Verdict verdict);

  /// What one side holds and the other does not, or what nobody compared: "grad/w: A holds 4, B holds 2".
  struct Open {
    std::string thing;
    std::int64_t a = 0, b = 0;  ///< held
    std::int64_t compared = 0;  ///< the fewer of both sides
  };
  std::vector<Open> open() const;

  /// Throws Error where more was compared than is held: the reader's list lacks a thing.
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
