// SPDX-License-Identifier: Apache-2.0
#include "probe/pairs_test.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "probe/answer.hpp"

namespace zs::probe {

TEST_CASE("pairs: two recordings") {
  const TemporaryFolder folder;
  const std::string a = folder.file("a"), b = folder.file("b");
  compare::Tally tally("zs-verify, two recordings");
  for (const ProbePair& pair : probe_pairs(8, 12)) {
    pair.a.write(a), pair.b.write(b);
    std::string said;
    bool passes = false;
    try {
      const Answer answer = compare(a, b, {});
      passes = equal(answer.verdict);
      said = name(answer.verdict);
      if (pair.equal) CHECK_MESSAGE(answer.verdict == compare::Verdict::exact, pair.kind);
    } catch (const Error& error) {
      said = error.what();
      CHECK_MESSAGE(said.find("/rank-") != std::string::npos, pair.kind, ": ", said);
    }
    if (passes != pair.equal) MESSAGE(pair.kind, ": ", said);
    tally.count(pair.kind, pair.equal, passes);
  }
  MESSAGE(tally.text(true));
  CHECK(tally.wrong() == 0);
}

}  // namespace zs::probe
