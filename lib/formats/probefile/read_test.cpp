// SPDX-License-Identifier: Apache-2.0
#include "probefile/read.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "base/folder.hpp"

namespace zs::probefile {

TEST_CASE("probe: a norm whose ranks have a share each is joined, in whatever order they are read") {
  const TemporaryFolder folder;
  const char* const shares[] = {"9", "16", "144"};
  for (int rank = 0; rank < 3; ++rank) {
    std::ofstream file(folder.file("rank-" + std::to_string(rank) + ".jsonl"));
    file << R"({"zs_probe": 2, "torch": "2", "world_size": 3, "id": "", "layout": "", "framework": "", "tied": {}, "frozen": [], )"
         << R"("unseen": [], "rank": )" << rank << "}\n"
         << R"({"step": 1, "loss": null, "losses": [], "groups": [], "batch": [], "locals": [], "values": null, "tensors": [], "scalars": {"clip": 0.5, "norm_squares": )"
         << shares[rank] << "}}\n";
  }
  const Run run = read(folder.path());
  REQUIRE(run.steps.contains(1));
  CHECK(run.steps.at(1).scalars.at("norm") == doctest::Approx(13));
  CHECK(run.steps.at(1).scalars.at("clip") == 0.5);
}

}  // namespace zs::probefile
