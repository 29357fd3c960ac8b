// SPDX-License-Identifier: Apache-2.0
#include "compare/pairs_test.hpp"

#include <doctest/doctest.h>

#include "compare/records.hpp"

namespace zs::compare {

TEST_CASE("pairs: the records of two runs, as zs-runs diff and all others compare them") {
  Tally tally("records");
  for (const RunPair& pair : run_pairs(1, 100)) {
    if (pair.kind.find("digest") != std::string::npos) continue;  // an attribute, no record
    const Settled verdict = records({"a", &pair.a.records, {}}, {"b", &pair.b.records, {}}, {}).verdict;
    tally.count(pair.kind, pair.equal, equal(verdict));
    // No tolerance hides what is missing or not finite, and none makes equal pairs fail.
    const Settled loose = records({"a", &pair.a.records, {}}, {"b", &pair.b.records, {}}, {1e-6, 1e-6}).verdict;
    if (pair.equal) CHECK_MESSAGE(loose == Verdict::exact, pair.kind);
    if (!pair.equal) CHECK_MESSAGE(loose != Verdict::exact, pair.kind);
  }
  MESSAGE(tally.text(true));
  CHECK(tally.wrong() == 0);
}

}  // namespace zs::compare
