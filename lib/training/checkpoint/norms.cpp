// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/norms.hpp"

#include <cmath>
#include <cstring>

#include "device/tensor.hpp"

namespace zs::checkpoint {

MicroBatchNorms::MicroBatchNorms(comm::Group& group, zero::Engine& engine) : group_(group), engine_(engine) {
  for (const zero::UnitState& state : engine.states()) {
    first_.push_back(tensors_);
    for (const auto& parameters : unit::tensors(state.unit())) tensors_ += parameters[0]->trained;
  }
  own_.resize(tensors_ * static_cast<std::size_t>(engine.plan().shape.micro_steps));
}

void MicroBatchNorms::add(int unit, int micro) {
  const zero::UnitState& state = engine_.states()[static_cast<std::size_t>(unit)];
  const at::Tensor host = state.gradient.on_host();
  const std::span<const float> values = device::floats(host);
  double* norm = own_.data() + static_cast<std::size_t>(micro) * tensors_ + first_[static_cast<std::size_t>(unit)];
  for (const auto& parameters : unit::tensors(state.unit())) {
    if (!parameters[0]->trained) continue;
    double squares = 0;
    for (const unit::Parameter* const parameter : parameters) {
      for (const float value :
           values.subspan(static_cast<std::size_t>(parameter->offset), static_cast<std::size_t>(parameter->numel())))
        squares += static_cast<double>(value) * value;
    }
    *norm++ = std::sqrt(squares) / engine_.scaler().scale();
  }
}

std::vector<std::vector<double>> MicroBatchNorms::gathered() {
  const plan::Shape& shape = engine_.plan().shape;
  const std::string mine(reinterpret_cast<const char*>(own_.data()), own_.size() * sizeof(double));
  const std::vector<std::string> ranks = group_.all_gather_object(mine, "exchange of the norms of gradients");
  std::vector<std::vector<double>> norms(tensors_, std::vector<double>(static_cast<std::size_t>(shape.leaves())));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (std::size_t i = 0; i < own_.size(); ++i) {
      const auto leaf = plan::leaf(shape, static_cast<int>(rank), static_cast<int>(i / tensors_));
      if (leaf < 0) continue;
      double& norm = norms[i % tensors_][static_cast<std::size_t>(leaf)];
      std::memcpy(&norm, ranks[rank].data() + i * sizeof(double), sizeof norm);
    }
  }
  return norms;
}

}  // namespace zs::checkpoint
