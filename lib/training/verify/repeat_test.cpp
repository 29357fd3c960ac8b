// SPDX-License-Identifier: Apache-2.0
// A training beside itself: equal where it should be, and each planted fault named by its unit and operation.
#include "verify/repeat.hpp"

#include <doctest/doctest.h>

#include "verify/case_test.hpp"

namespace zs::verify {
namespace {

Repeated repeated(Request request, int ranks, std::int64_t times) {
  Repeated result;
  request.train.ranks = ranks;
  comm::run_in_process(ranks, [&](comm::Group& group) {
    const Repeated here = repeat(group, request, times, {});
    if (group.rank() == 0) result = here;
  });
  return result;
}

TEST_CASE(
    "repeat: a training has its own bits again, in every stage, also where another rank count would have others") {
  const Text text;
  for (const int stage : {0, 1, 2, 3}) {
    Request r = request(text, stage, 2, 2);
    r.train.activation_checkpointing = stage == 3;
    const Repeated result = repeated(r, stage == 0 ? 1 : 2, 3);
    CAPTURE(stage);
    CHECK(result.kind == compare::Verdict::exact);
    CHECK(result.repetitions == 3);
    CHECK(result.differing == 0);
    CHECK(result.results > 100);
  }
  CHECK(repeated(request(text, 1, 1, 1), 3, 2).kind == compare::Verdict::exact);
}

TEST_CASE("repeat: a fault in one repetition is named: its repetition, step, unit, operation, parameter and rank") {
  const Text text;
  for (const int stage : {0, 2}) {
    Request r = request(text, stage, 2, 2);
    r.fault = "2:transformer.h.0.mlp.c_fc.weight:5";
    const Repeated result = repeated(r, 2, 3);
    CAPTURE(stage);
    CHECK(result.kind == compare::Verdict::different);
    CHECK(result.differing == 1);
    CHECK(result.first.repetition == 3);
    CHECK(result.first.step == 2);
    CHECK(result.first.what == What::gradient);
    CHECK(result.first.phase == (stage == 2 ? Phase::shard_accumulation : Phase::reduction));
    CHECK(result.first.unit == "h.0");
    CHECK(result.first.parameter == "transformer.h.0.mlp.c_fc.weight");
  }
}

TEST_CASE("repeat: what a forward gives differs before all that comes of it") {
  const Text text;
  Request r = request(text, 3, 1, 2);
  r.fault = "2:output:h.0:1";
  const Repeated result = repeated(r, 2, 2);
  CHECK(result.kind == compare::Verdict::different);
  CHECK(result.first.step == 2);
  CHECK(result.first.phase == Phase::forward);
  CHECK(result.first.what == What::output);
  CHECK(result.first.unit == "h.0");
  CHECK(result.first.parameter.empty());
  CHECK(result.first.rank == 1);
  CHECK(result.first.leaf == 1);
}

TEST_CASE("repeat: what proves nothing fails with a reason") {
  const Text text;
  Request wild = request(text, 1, 1, 3);
  wild.train.schedule.learning_rate = 1e36;
  const Repeated result = repeated(wild, 1, 2);
  CHECK(result.kind == compare::Verdict::failed);
  CHECK(result.reason.find("the loss is ") == 0);
}

}  // namespace
}  // namespace zs::verify
