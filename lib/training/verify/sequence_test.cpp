// SPDX-License-Identifier: Apache-2.0
// Sequences in chunks beside plain LibTorch: exact where it computes the same chunks, equal up to rounding where it
// computes whole sequences, and faults of chunks, heads and losses are found at their place.
#include <doctest/doctest.h>

#include <array>

#include "base/error.hpp"
#include "device/tree.hpp"
#include "setup/batches.hpp"
#include "setup/covering_test.hpp"
#include "verify/case_test.hpp"
#include "verify/reference.hpp"

namespace zs::verify {
namespace {

struct Layout {
  int ranks, sequence, chunks;
};

Request shared(const Text& text, int stage, int micro_steps, const Layout& layout) {
  Request r = request(text, stage, micro_steps, 2);
  r.train.model.seq_length = 16;
  r.train.ranks = layout.ranks, r.train.sequence = layout.sequence, r.train.chunks = layout.chunks;
  return r;
}

TEST_CASE("verify: sequences in chunks are exact in every stage, format and family, however many ranks share them") {
  const Text text;
  constexpr std::array kNames = {"tiny", "tiny-llama", "tiny-gemma2", "tiny-mixtral"};
  constexpr std::array kLayouts = {Layout{2, 2, 2}, Layout{4, 2, 4}, Layout{4, 4, 4}, Layout{2, 1, 2}};
  // Any two of family, stage, layout, micro-batches of a rank, kernels, format and checkpointing meet.
  for (const auto& row : setup::covering({4, 4, 4, 3, 2, 3, 2})) {
    CAPTURE(setup::shown(row));
    Request r = shared(text, row[1], 1 + row[3], kLayouts.at(static_cast<std::size_t>(row[2])));
    r.train.model.name = kNames.at(static_cast<std::size_t>(row[0]));
    r.train.model.num_layers = 2;
    r.train.model.fused = row[4] == 1;
    if (row[5] == 1) r.train.engine.dtype = at::kBFloat16;
    // A chunk's mean has larger gradients than that of whole sequences, by the number of chunks: the first steps of
    // float16 would be skipped.
    if (row[5] == 2) r.train.engine.dtype = at::kHalf, r.train.engine.loss_scaling.initial_power = 8;
    r.train.activation_checkpointing = row[6] == 1;
    const Verdict verdict = compared(r).verdict;
    CHECK_MESSAGE(verdict.kind == compare::Verdict::exact, verdict.reason);
    CHECK(verdict.steps == 2);
  }
}

TEST_CASE("verify: beside whole sequences chunks of them are equal up to rounding") {
  const Text text;
  for (const int stage : {0, 3}) {
    Request r = shared(text, stage, 2, {2, 2, 4});
    r.train.model.dropout = 0;
    r.whole = true;
    r.tolerance = {1e-4, 0};
    CHECK(compared(r).verdict.kind == compare::Verdict::within);
    r.fault = "2:heads:h.0";
    CHECK(compared(r).verdict.kind == compare::Verdict::different);
  }
}

TEST_CASE("verify: queries of a head in each other's place are found, with step and micro-batch") {
  const Text text;
  for (const Layout layout : {Layout{2, 2, 2}, Layout{1, 1, 4}}) {
    Request r = shared(text, 2, 2, layout);
    r.train.model.num_layers = 2;
    r.fault = "2:heads:h.1";
    const Outcome outcome = compared(r);
    CHECK(outcome.verdict.kind == compare::Verdict::different);
    CHECK(outcome.verdict.step == 2);
    CHECK(outcome.verdict.finding.what == What::loss);
    CHECK(outcome.verdict.finding.leaf == 0);
  }
  Request r = shared(text, 2, 2, {2, 2, 2});
  r.fault = "2:heads:head";
  CHECK_THROWS_WITH_AS(compared(r), "--inject_fault: head has no heads", UsageError);
  r.fault = "2:heads:h.0", r.train.sequence = r.train.chunks = 1;
  CHECK_THROWS_WITH_AS(compared(r),
                       "--inject_fault: sequences are whole and have no blocks of heads: set --sequence_chunks",
                       UsageError);
}

/// What a training with wrong chunks and the reference come to in one step.
struct Step {
  std::vector<float> right, wrong;
  /// The first leaf whose loss is another; -1: none.
  int first() const {
    for (std::size_t leaf = 0; leaf < right.size(); ++leaf) {
      if (right[leaf] != wrong[leaf]) return static_cast<int>(leaf);
    }
    return -1;
  }
};

Step step(const Text& text, const std::function<void(std::int64_t chunk, unit::Batch& batch)>& plant) {
  constexpr int kChunks = 4;
  const Request r = shared(text, 2, 1, {2, 2, kChunks});
  const model::Model model = model::make(r.train.model);
  Step both;
  comm::run_in_process(2, [&](comm::Group& group) {
    setup::Batches batches(r.train, model, r.train.micro_batches());
    zero::Engine engine(group, model.units, r.train.strategy(), r.train.engine);
    const zero::StepResult result = engine.step(1, 1e-3, [&](std::int64_t leaf) {
      unit::Batch batch = batches.training(1, leaf);
      plant(leaf % kChunks, batch);
      return batch;
    });
    if (group.rank() > 0) return;
    Reference reference(model.units, {.chunks = kChunks, .seed = r.train.engine.seed}, r.train.leaves());
    const auto whole = [&](std::int64_t number) { return batches.micro_batch(1, number); };
    both = {reference.compute(1, whole, {}).leaf_losses, result.leaf_losses};
  });
  return both;
}

TEST_CASE("verify: wrong positions, a lost target and a loss that is scaled are seen in the chunk that has them") {
  const Text text;
  CHECK(step(text, [](std::int64_t, unit::Batch&) {}).first() == -1);
  // Positions that begin anew in the third chunk: what is in front of it does not see it.
  CHECK(step(text, [](std::int64_t chunk, unit::Batch& batch) {
          if (chunk == 2) batch.first = 0;
        }).first() == 2);
  // The last target of a chunk is the first token of the next one.
  CHECK(step(text, [](std::int64_t chunk, unit::Batch& batch) {
          if (chunk != 1) return;
          batch.targets.select(1, batch.targets.size(1) - 1).fill_(-100);
          batch.weight = 1.0F;
        }).first() == 1);
  // DeepSpeed multiplied the loss by the number of ranks that share a sequence.
  const Step scaled = step(text, [](std::int64_t, unit::Batch& batch) { batch.weight = 2.0F; });
  CHECK(scaled.first() == 0);
  CHECK(scaled.wrong[3] == doctest::Approx(2 * scaled.right[3]));
}

}  // namespace
}  // namespace zs::verify
