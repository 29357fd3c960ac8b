// SPDX-License-Identifier: Apache-2.0
#include "compare/pairs_test.hpp"

#include <doctest/doctest.h>

#include "compare/records.hpp"
#include "compare/tensors.hpp"

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

TEST_CASE("pairs: tensors") {
  Tally tally("tensors");
  for (const TensorPair& pair : tensor_pairs(2, 20)) {
    std::vector<Leaf> a, b;
    for (const auto& [name, tensor] : pair.a) a.push_back({name, tensor});
    for (const auto& [name, tensor] : pair.b) b.push_back({name, tensor});
    const Tensors found = tensors({a, b}, "A", "B", {});
    tally.count(pair.kind, pair.equal, equal(found.verdict));
    if (found.verdict == Verdict::different) CHECK_MESSAGE((found.first || !found.unlike.empty()), pair.kind);
    if (pair.kind.starts_with("one bit")) CHECK(found.differing == 1);
  }
  MESSAGE(tally.text(true));
  CHECK(tally.wrong() == 0);
}

}  // namespace zs::compare
