// SPDX-License-Identifier: Apache-2.0
// The same promise for experts that ranks divide: the digest of experts that are whole.
#include <doctest/doctest.h>

#include "base/folder.hpp"
#include "train/case_test.hpp"

namespace zs::train {
namespace {

TEST_CASE("exact: divided experts have the digest, loss and norm of whole ones") {
  at::globalContext().setDeterministicAlgorithms(true, false);
  const TemporaryFolder folder;
  struct Kind {
    const char* name;
    bool fused;
    at::ScalarType dtype = at::kFloat;
    optimizer::Kind optimizer = optimizer::Kind::adamw;
  };
  int number = 0;
  for (const auto& [name, fused, dtype, kind] :
       {Kind{"tiny-mixtral", false}, Kind{"tiny-qwen3-moe", true}, Kind{"tiny-mixtral", true, at::kBFloat16},
        Kind{"tiny-qwen3-moe", false, at::kHalf}, Kind{"tiny-mixtral", false, at::kFloat, optimizer::Kind::muon},
        Kind{"tiny-qwen3-moe", true, at::kFloat, optimizer::Kind::adamw_8bit}, Kind{"tiny-gpt-oss", false},
        Kind{"tiny-gpt-oss", true, at::kBFloat16}, Kind{"tiny-gpt-oss", true, at::kFloat, optimizer::Kind::muon},
        Kind{"tiny-gpt-oss", false, at::kBFloat16, optimizer::Kind::adamw_8bit}}) {
    CAPTURE(name);
    CAPTURE(fused);
    CAPTURE(dtype);
    Case one{.max_grad_norm = 0.5, .fused = fused, .model = name, .dtype = dtype, .packed = number % 2 == 1};
    one.optimizer.kind = kind;
    one.layout.micro_steps = 12;
    const CaseResult expected = trained(one);
    ++number;
    // Each stage once; any two of stage, division, schedule, checkpointing and offloading meet in some kind.
    for (const int stage : {0, 1, 2, 3}) {
      const int turn = 4 * number + stage, experts = (number + stage) % 2 == 0 ? 2 : 4;
      Case c = one;
      c.layout.stage = stage, c.layout.experts = experts, c.layout.ranks = experts * (1 + turn % 3);
      c.layout.divide(12);
      c.compiled = number / 2 % 2 == stage % 2, c.checkpointing = turn / 3 % 2 == 0;
      if (stage > 0 && turn % 5 == 1) c.offload.optimizer = zero::Place::host;
      if (stage == 3 && turn % 5 >= 3) c.offload = {zero::Place::host, zero::Place::disk, folder.path()};
      CAPTURE(stage);
      CAPTURE(experts);
      CAPTURE(c.layout.ranks);
      CHECK(trained(c) == expected);
    }
  }
}

}  // namespace
}  // namespace zs::train
