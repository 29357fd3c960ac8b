// SPDX-License-Identifier: Apache-2.0
// The same promise for experts that ranks divide: the digest of experts that are whole.
#include <doctest/doctest.h>

#include "base/folder.hpp"
#include "setup/covering_test.hpp"
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
  // Any two of stage, division, groups of ranks, schedule, checkpointing and offloading meet in some kind.
  setup::Turns turns({4, 2, 3, 2, 2, 3});
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
    one.layout.divide(4);  // 6 ranks have not as many each, more than 4 share them
    const CaseResult expected = trained(one);
    ++number;
    for (int layout = 0; layout < 2; ++layout) {
      const auto row = turns.next([](const std::vector<int>&) { return true; });
      const int stage = row[0], experts = 2 << row[1];
      Case c = one;
      c.layout.stage = stage, c.layout.experts = experts, c.layout.ranks = experts * (1 + row[2]);
      c.layout.divide(4);
      c.compiled = row[3] == 1, c.checkpointing = row[4] == 1;
      if (stage > 0 && row[5] > 0) c.offload.optimizer = zero::Place::host;
      if (stage == 3 && row[5] == 2) c.offload = {zero::Place::host, zero::Place::disk, folder.path()};
      CAPTURE(stage);
      CAPTURE(experts);
      CAPTURE(c.layout.ranks);
      CHECK(trained(c) == expected);
    }
  }
  CHECK(turns.all());
}

}  // namespace
}  // namespace zs::train
