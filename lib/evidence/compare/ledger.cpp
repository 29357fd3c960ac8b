// SPDX-License-Identifier: Apache-2.0
#include "compare/ledger.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace zs::compare {

Ledger::Ledger(const Holdings& a, const Holdings& b) {
  for (const auto& [thing, count] : a.counts()) things_[thing].a.held = count;
  for (const auto& [thing, count] : b.counts()) things_[thing].b.held = count;
}

void Ledger::compared(const std::string& thing, Verdict outcome, std::int64_t count_a, std::int64_t count_b) {
  Thing& at = things_[thing];
  at.a.settled += count_a, at.a.compared += count_a;
  at.b.settled += count_b, at.b.compared += count_b;
  at.worst = std::max(at.worst, outcome);
}

void Ledger::excuse(Holder holder, const std::string& thing, std::int64_t count) {
  Thing& at = things_[thing];
  (holder == Holder::a ? at.a : at.b).settled += count;
}

void Ledger::at_least(Verdict verdict) { least_ = std::max(least_, verdict); }

std::vector<Ledger::Open> Ledger::open() const {
  std::vector<Open> left;
  for (const auto& [thing, at] : things_) {
    if (!at.closed()) left.push_back({thing, at.a.held, at.b.held, std::min(at.a.compared, at.b.compared)});
  }
  return left;
}

Settled Ledger::settle() const {
  Verdict worst = least_;
  std::int64_t compared = 0;
  for (const auto& [thing, at] : things_) {
    if (at.a.settled > at.a.held || at.b.settled > at.b.held)
      throw Error("more of " + thing + " was compared than either side holds: this is a fault of zs");
    if (!at.closed()) worst = std::max(worst, Verdict::inconclusive);
    worst = std::max(worst, at.worst);
    compared += std::min(at.a.compared, at.b.compared);
  }
  return Settled(compared == 0 ? std::max(worst, Verdict::failed) : worst);
}

}  // namespace zs::compare
