// SPDX-License-Identifier: Apache-2.0
// A forward pass without ranks, for tests.
#pragma once
#include <vector>

#include "device/tensor.hpp"
#include "model/model.hpp"
#include "unit/random.hpp"

namespace zs::model {

struct Forward {
  at::Tensor logits, last;  ///< `last`: what the last unit gives, the loss
};

/// Of a micro-batch, parameters being as they begin with `seed` 3.
inline Forward forward(const Model& model, const unit::Batch& batch) {
  const at::NoGradGuard no_grad;
  Forward made;
  at::Tensor beside;
  const unit::ForwardContext context{.batch = batch, .training = false, .logits = &made.logits, .beside = &beside};
  std::vector<std::vector<at::Tensor>> parameters;
  for (const auto& unit : model.units) {
    const at::Tensor flat = at::empty({unit->numel()});
    unit::initialise(*unit, 3, 0, device::floats(flat));
    parameters.push_back(unit::views(*unit, flat));
    const int tied_to = unit->tied_to();
    made.last = unit->forward(
        made.last, parameters.back(),
        tied_to < 0 ? std::span<const at::Tensor>() : parameters[static_cast<std::size_t>(tied_to)], context);
  }
  return made;
}

}  // namespace zs::model
