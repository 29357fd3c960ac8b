// SPDX-License-Identifier: Apache-2.0
// Initial values, and a forward pass without ranks, for tests.
#pragma once
#include <vector>

#include "model/model.hpp"
#include "unit/random.hpp"

namespace zs::model {

struct Forward {
  at::Tensor logits, last;  ///< `last`: what the last unit gives, the loss
};

/// Elements [begin, end) of a unit's flat buffer, as they begin.
inline at::Tensor beginning(const unit::Unit& unit, std::uint64_t seed, std::int64_t begin, std::int64_t end) {
  const at::Tensor values = at::empty({end - begin});
  unit::initialise(unit, seed, begin, {values.data_ptr<float>(), static_cast<std::size_t>(end - begin)});
  return values;
}

/// Of a micro-batch, parameters being as they begin with `seed` 3.
inline Forward forward(const Model& model, const unit::Batch& batch, bool training = false) {
  const at::NoGradGuard no_grad;
  Forward made;
  at::Tensor beside;
  const unit::ForwardContext context{.batch = batch, .training = training, .logits = &made.logits, .beside = &beside};
  std::vector<std::vector<at::Tensor>> parameters;
  for (const auto& unit : model.units) {
    parameters.push_back(unit::views(*unit, beginning(*unit, 3, 0, unit->numel())));
    const int tied_to = unit->tied_to();
    made.last = unit->forward(
        made.last, parameters.back(),
        tied_to < 0 ? std::span<const at::Tensor>() : parameters[static_cast<std::size_t>(tied_to)], context);
  }
  return made;
}

}  // namespace zs::model
