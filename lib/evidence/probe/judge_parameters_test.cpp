// SPDX-License-Identifier: Apache-2.0
// What forward finds of parameters that ranks hold in parts.
#include <doctest/doctest.h>

#include <cmath>

#include "probe/judges.hpp"

namespace zs::probe {
namespace {

/// A tensor of 4 elements: whole, or two parts of two ranks.
Tensor made(const std::vector<std::uint64_t>& digests, int first = 0) {
  Tensor tensor;
  tensor.dtype = "F16", tensor.shape = {4}, tensor.total = 4;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const int rank = first + static_cast<int>(i);
    const bool whole = digests.size() == 1 && first == 0;
    tensor.pieces.push_back({std::to_string(rank), 2 * rank, whole ? 4 : 2, true, digests[i], rank, "", "", 0});
    tensor.digest += digests[i], tensor.held += tensor.pieces.back().count;
  }
  for (int i = 1; i <= 8; ++i) tensor.sketch.push_back(std::sin(static_cast<double>(tensor.digest) * i));
  return tensor;
}

std::string found(const Tensor& older, const Tensor& left, const Tensor& now) {
  Run run;
  run.steps[1].tensors.at("model/w") = older;
  run.steps[2].tensors.at("model/w") = left;
  run.steps[3].tensors.at("begin.model/w") = now;
  Tally tally;
  judge_found(run, tally, {3, run.steps[3], &run.steps[2], nullptr});
  return tally.breaches().empty() ? "" : tally.breaches().front().relation;
}

}  // namespace

TEST_CASE("judges: forward may find a parameter that is cut otherwise, and a part that is stale is of a rank") {
  CHECK(found(made({1, 2}), made({7}), made({3, 4})) == "");
  CHECK(found(made({1, 2}), made({3, 4}), made({5, 4})) ==
        "forward computes with other values than the update of step 2 left");
  CHECK(found(made({1, 2}), made({3, 4}), made({1, 2})).ends_with("left: those of the step before, it is stale"));
  CHECK(found(made({1, 2}), made({3, 4}), made({2}, 1)) ==
        "forward computes with other values than the update of step 2 left, on rank 1: those of the step before, it is "
        "stale");
}

}  // namespace zs::probe
