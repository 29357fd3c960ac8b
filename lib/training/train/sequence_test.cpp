// SPDX-License-Identifier: Apache-2.0
// The same promise for sequences in chunks: one digest for each number of chunks, however many ranks share them.
#include <doctest/doctest.h>

#include <set>

#include "base/file.hpp"
#include "base/folder.hpp"
#include "setup/covering_test.hpp"
#include "train/case_test.hpp"

namespace zs::train {
namespace {

TEST_CASE("exact: chunks of sequences have one digest, however many ranks share them") {
  at::globalContext().setDeterministicAlgorithms(true, false);
  const TemporaryFolder folder;
  std::set<std::string> digests;
  constexpr int kLeaves = 4;  // one and two groups of ranks have as many each, three have not
  // Any two of stage, ranks that share, groups of them, schedule, checkpointing and offloading meet in some kind.
  setup::Turns turns({4, 3, 3, 2, 2, 3});
  struct Kind {
    const char* name;
    int chunks;
    bool fused;
    at::ScalarType dtype = at::kFloat;
  };
  int kinds = 0;
  for (const auto& [name, chunks, fused, dtype] :
       {Kind{"tiny", 2, false}, Kind{"tiny", 4, true}, Kind{"tiny-llama", 2, true}, Kind{"tiny-llama", 4, false},
        Kind{"tiny", 4, false, at::kBFloat16}, Kind{"tiny-gemma2", 4, true, at::kBFloat16}, Kind{"tiny-phi3", 2, false},
        Kind{"tiny-qwen3", 4, true}, Kind{"tiny-mistral", 2, false, at::kHalf}, Kind{"tiny-mixtral", 4, false},
        Kind{"tiny-qwen3-moe", 2, true}, Kind{"tiny-qwen3-moe", 4, false}, Kind{"tiny-gpt-oss", 4, true},
        Kind{"tiny-mixtral", 2, true, at::kBFloat16}}) {
    const bool packed = kinds++ % 2 == 1;
    CAPTURE(name);
    CAPTURE(chunks);
    CAPTURE(fused);
    CAPTURE(packed);
    Case one{.max_grad_norm = 0.5, .fused = fused, .model = name, .dtype = dtype, .packed = packed};
    one.dropout = 0;
    one.layout.divide(kLeaves);
    const CaseResult whole = trained(one);
    one.layout.chunks = chunks;
    const CaseResult divided = trained(one);
    CHECK(divided.digest != whole.digest);
    CHECK(divided.loss == doctest::Approx(whole.loss).epsilon(dtype == at::kFloat ? 1e-5 : 1e-2));
    CHECK(divided.norm == doctest::Approx(whole.norm).epsilon(dtype == at::kFloat ? 1e-4 : 3e-2));
    one.dropout = 0.1;
    const CaseResult expected = trained(one);
    CHECK(digests.insert(expected.digest).second);
    for (int layout = 0; layout < 2; ++layout) {
      // Ranks share the sequences of each family at least once.
      const auto row = turns.next(
          [&](const std::vector<int>& one_of) { return 1 << one_of[1] <= chunks && (layout == 1 || one_of[1] > 0); });
      const int stage = row[0], sequence = 1 << row[1];
      Case c = one;
      c.layout.stage = stage, c.layout.sequence = sequence, c.layout.ranks = sequence * (1 + row[2]);
      c.layout.divide(kLeaves);
      c.compiled = row[3] == 1, c.checkpointing = row[4] == 1;
      if (stage > 0 && row[5] > 0) c.offload.optimizer = zero::Place::host;
      if (stage == 3 && row[5] == 2) c.offload = {zero::Place::host, zero::Place::disk, folder.path()};
      CAPTURE(stage);
      CAPTURE(sequence);
      CAPTURE(c.layout.ranks);
      CHECK(trained(c) == expected);
    }
  }
  CHECK(turns.all());
}

TEST_CASE("exact: chunks of samples that end in padding have the auxiliary loss of whole ones, and one digest") {
  for (const char* const name : {"tiny-mixtral", "tiny-gpt-oss"}) {
    CAPTURE(name);
    Case one = brief({.max_grad_norm = 0, .model = name, .padded = true, .auxiliary = 1});
    one.dropout = 0;
    const CaseResult whole = trained(one);
    one.layout.chunks = 4;
    const CaseResult divided = trained(one);
    CHECK(divided.loss == doctest::Approx(whole.loss).epsilon(1e-5));
    CHECK(divided.norm == doctest::Approx(whole.norm).epsilon(1e-4));
    one.layout.sequence = 2, one.layout.ranks = 4, one.layout.stage = 3;
    one.layout.divide(4);
    CHECK(trained(one) == divided);
  }
}

TEST_CASE("exact: three ranks share sequences in three chunks, six heads and three of keys and values") {
  at::globalContext().setDeterministicAlgorithms(true, false);
  const TemporaryFolder folder;
  write_file(folder.path() + "/config.json",
             R"({"model_type": "llama", "hidden_size": 48, "intermediate_size": 64, "num_hidden_layers": 2,
                 "num_attention_heads": 6, "num_key_value_heads": 3, "vocab_size": 256,
                 "max_position_embeddings": 256})");
  const std::string name = folder.path();
  Case one{.max_grad_norm = 0.5, .model = name.c_str()};
  one.length = 18, one.layout.chunks = 3;
  const CaseResult expected = trained(one);
  for (const auto& [stage, groups] : {std::pair(0, 2), std::pair(1, 3), std::pair(2, 2), std::pair(2, 3),
                                      std::pair(3, 1), std::pair(3, 2), std::pair(3, 3)}) {
    Case c = one;
    c.layout.stage = stage, c.layout.sequence = 3, c.layout.ranks = 3 * groups;
    c.layout.divide(8);
    CAPTURE(stage);
    CAPTURE(groups);
    CHECK(trained(c) == expected);
  }
}

}  // namespace
}  // namespace zs::train
