// SPDX-License-Identifier: Apache-2.0
// A small training that tests of exactness run in many layouts.
#pragma once
#include <string>

#include "model/model.hpp"
#include "plan/pass.hpp"
#include "unit/random.hpp"
#include "zero/engine.hpp"

namespace zs::train {

struct Case {
  plan::Layout layout{.micro_steps = 8};
  bool compiled = false, checkpointing = false;
  double max_grad_norm = 1;
  bool fused = false;
  const char* model = "tiny";
  zero::Offload offload{};
  at::ScalarType dtype = at::kFloat;
  zero::ZeroPlusPlus zeropp{};
  plan::Schedule passes{};
  plan::Budget budget{};
  bool packed = false;    // samples hold several documents, of which some tokens are no targets
  bool padded = false;    // samples end in padding
  double auxiliary = -1;  // factor of the experts' auxiliary loss; negative: the model's
  optimizer::Settings optimizer{};
  model::Adaptation adaptation{};
  std::int64_t length = 16;
  double dropout = 0.1;
  bool keeps_attention = false;  // with checkpointing
  int steps = 2;                 // parameters and moments that one step wrote are read and written again
};

/// Of four micro-batches: what a layout does beside the kernel, family or optimizer that a case is about.
inline Case brief(Case c) {
  c.layout.divide(4);
  return c;
}

/// Documents of other lengths in each leaf; in every third it is as if each sample were one.
inline unit::Batch packed(unit::Batch batch, std::int64_t leaf) {
  const std::int64_t cut = 1 + leaf % 7;
  batch.targets.select(1, cut - 1).fill_(-100);
  batch.weight = 0.5F + 0.25F * static_cast<float>(leaf % 4);
  if (leaf % 3 > 0) batch.documents = unit::documents({0, cut, cut + 8, 16, 16 + cut}, 2, 16);
  return batch;
}

/// The last third of each sample is padding; in front of it, also right in front, some tokens are no targets, and no
/// padding.
inline unit::Batch padded(unit::Batch batch) {
  const std::int64_t length = batch.targets.size(1), tail = length / 3;
  batch.targets.narrow(1, length - tail - 1, tail + 1).fill_(-100);
  batch.targets.narrow(1, length / 8, length / 4).fill_(-100);
  batch.weight = 1.0F, batch.lengths = at::full({batch.samples()}, length - tail, at::TensorOptions(at::kLong));
  return batch;
}

inline unit::Batch batch(const model::Model& model, std::int64_t step, std::int64_t leaf, std::int64_t length) {
  const at::Generator random =
      unit::generator(unit::mix(static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(leaf)));
  if (model.takes_images()) {
    const std::int64_t size = model.image_size;
    return {at::randn({2, 3, size, size}, random),
            at::randint(0, model.num_labels, {2}, random, at::TensorOptions(at::kLong))};
  }
  const at::Tensor tokens = at::randint(0, 256, {2, length + 1}, random, at::TensorOptions(at::kLong));
  return {tokens.narrow(1, 0, length).contiguous(), tokens.narrow(1, 1, length).contiguous()};
}

struct CaseResult {
  std::string digest;
  double loss = 0, norm = 0;
  bool operator==(const CaseResult&) const = default;
};

inline CaseResult trained(const Case& c) {
  CaseResult outcome;
  comm::run_in_process(c.layout.ranks, [&](comm::Group& group) {
    const model::Model model = model::make({.name = c.model,
                                            .num_layers = 2,
                                            .seq_length = model::takes_images(c.model) ? 0 : c.length,
                                            .dropout = c.dropout,
                                            .fused = c.fused,
                                            .router_aux_loss_coef = c.auxiliary,
                                            .adaptation = c.adaptation});
    zero::Engine engine(group, model.units,
                        {c.layout, c.checkpointing, c.keeps_attention,
                         c.passes.empty() && c.compiled ? plan::from_the_start(plan::usual_passes()) : c.passes,
                         c.budget, 2 * c.length},
                        {.optimizer = c.optimizer,
                         .max_grad_norm = c.max_grad_norm,
                         .dtype = c.dtype,
                         .offload = c.offload,
                         .zeropp = c.zeropp});
    zero::StepResult last;
    for (std::int64_t step = 1; step <= c.steps; ++step) {
      last = engine.step(step, 1e-3, [&](std::int64_t leaf) {
        const unit::Batch one = batch(model, step, leaf / c.layout.chunks, c.length);
        const unit::Batch whole = c.packed ? packed(one, leaf / c.layout.chunks) : c.padded ? padded(one) : one;
        return c.layout.chunks > 1 ? whole.chunk(leaf % c.layout.chunks, c.layout.chunks) : whole;
      });
    }
    const std::string digest = engine.digest();
    if (group.rank() == 0) outcome = {digest, last.loss, last.grad_norm};
  });
  return outcome;
}

}  // namespace zs::train
