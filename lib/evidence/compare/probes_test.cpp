// SPDX-License-Identifier: Apache-2.0
#include "compare/probes.hpp"

#include <doctest/doctest.h>

#include "base/folder.hpp"
#include "compare/probe_file.hpp"
#include "compare/probe_pairs_test.hpp"

namespace zs::compare {
namespace {

std::string line(const ProbeAnswer& answer, const std::string& key) {
  for (const auto& [name, value] : answer.lines) {
    if (name == key) return value;
  }
  return "";
}

}  // namespace

TEST_CASE("pairs: two probes") {
  const TemporaryFolder folder;
  const std::string a = folder.file("a"), b = folder.file("b");
  Tally tally("zs-verify, two probes");
  for (const ProbePair& pair : probe_pairs(8, 12)) {
    pair.a.write(a), pair.b.write(b);
    std::string said;
    bool passes = false;
    try {
      const ProbeAnswer answer = compare_probes(a, b, {});
      passes = equal(answer.verdict);
      said = name(answer.verdict);
      if (pair.equal) CHECK_MESSAGE(answer.verdict == Verdict::exact, pair.kind);
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

TEST_CASE("probes: the layouts of both sides, and a remark where they are the same") {
  const TemporaryFolder folder;
  recording(1, 3, true, 1).write(folder.file("cut"));
  recording(1, 1, false, 2).write(folder.file("whole"));
  recording(1, 3, true, 3).write(folder.file("again"));
  const ProbeAnswer other = compare_probes(folder.file("cut"), folder.file("whole"), {});
  CHECK(line(other, "layout_a") == "cut over 3 ranks");
  CHECK(line(other, "layout_b") == "whole on 1 rank");
  CHECK(line(other, "layouts").empty());
  // Each tensor whole, but on one rank alone: as a flat buffer is cut.
  Recording flat = recording(1, 3, false, 4);
  for (std::size_t step = 0; step < flat.steps(); ++step) {
    for (std::size_t rank = 1; rank < 3; ++rank) {
      for (std::size_t number = 0; number < 4; ++number) {
        auto& tensor = flat.tensor(rank, step, number);
        tensor["count"] = 0, tensor["squares"] = 0;
      }
    }
  }
  flat.write(folder.file("flat"));
  CHECK(line(compare_probes(folder.file("flat"), folder.file("cut"), {}), "layout_a") == "cut over 3 ranks");
  const ProbeAnswer same = compare_probes(folder.file("cut"), folder.file("again"), {});
  CHECK(line(same, "layouts").starts_with("the same on both sides"));
}

TEST_CASE("probes: a difference of which norms alone are known is not said to be rounding") {
  const TemporaryFolder folder;
  Recording a = recording(3, 1, false, 1), b = recording(3, 1, false, 2);
  b.tensor(0, 0, 0)["digest"] = "0123456789abcdef";  // the same norm: a sign may have turned
  a.write(folder.file("a")), b.write(folder.file("b"));
  const ProbeAnswer turned = compare_probes(folder.file("a"), folder.file("b"), {});
  CHECK(turned.verdict == Verdict::inconclusive);
  CHECK(line(turned, "kind").starts_with("rounding, as far as the norms tell"));
  b.tensor(0, 1, 1)["digest"] = "0123456789abcdef", b.tensor(0, 1, 1)["squares"] = 9.0;
  b.write(folder.file("b"));
  const ProbeAnswer beyond = compare_probes(folder.file("a"), folder.file("b"), {});
  CHECK(beyond.verdict == Verdict::different);
  CHECK(line(beyond, "step") == "2");  // not step 1, which may be rounding
  CHECK(line(beyond, "parameter") == "b");
}

TEST_CASE("probes: faults have their file and line") {
  const TemporaryFolder folder;
  Recording a = recording(4, 3, true, 1), b = recording(4, 3, true, 2);
  b.ranks[1].pop_back();
  b.ranks[2].insert(b.ranks[2].begin() + 1, Recording::Json(b.ranks[2][1]));
  a.write(folder.file("a")), b.write(folder.file("b"));
  const ProbeAnswer answer = compare_probes(folder.file("a"), folder.file("b"), {});
  CHECK(answer.verdict == Verdict::failed);
  CHECK(line(answer, "failure")
            .find("b/rank-1.jsonl:" + std::to_string(b.ranks[1].size()) + ": is the last line, and no end") !=
        std::string::npos);
  CHECK(line(answer, "failure").find("b/rank-2.jsonl:3: step 1 is there twice, first in line 2") != std::string::npos);
}

}  // namespace zs::compare
