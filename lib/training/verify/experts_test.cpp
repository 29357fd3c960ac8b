// SPDX-License-Identifier: Apache-2.0
// Divided experts beside plain LibTorch, which computes all of them for each micro-batch.
#include <doctest/doctest.h>

#include "verify/case_test.hpp"

namespace zs::verify {
namespace {

Request divided(const Text& text, int stage, int ranks, int experts) {
  Request r = request(text, stage, 2, 2);
  r.train.model.name = stage % 2 == 0 ? "tiny-mixtral" : "tiny-qwen3-moe";
  r.train.model.num_layers = 2;
  r.train.model.seq_length = 24;
  r.train.ranks = ranks, r.train.experts = experts;
  return r;
}

TEST_CASE("verify: divided experts are exact beside a plain loop over all, in every stage; of one a fault is named") {
  const Text text;
  for (const int stage : {0, 1, 2, 3}) {
    for (const int ranks : {2, 4}) {
      CAPTURE(stage);
      CAPTURE(ranks);
      Request r = divided(text, stage, ranks, 2);
      if ((stage + ranks / 2) % 3 == 0) r.train.model.name = "tiny-gpt-oss";
      r.train.model.fused = stage > 1;
      if (stage == 2) r.train.engine.dtype = at::kBFloat16;
      r.train.activation_checkpointing = stage == 3;
      const Verdict verdict = compared(r, ranks).verdict;
      CHECK_MESSAGE(verdict.kind == compare::Verdict::exact, verdict.reason);
    }
  }
  Request r = divided(text, 2, 4, 2);
  r.fault = "2:model.layers.0.block_sparse_moe.experts.3.w2.weight:7";
  const Outcome outcome = compared(r, 4);
  CHECK(outcome.verdict.kind == compare::Verdict::different);
  CHECK(outcome.parameter == "model.layers.0.block_sparse_moe.experts.3.w2.weight");
  CHECK(outcome.verdict.step == 2);
}

}  // namespace
}  // namespace zs::verify
