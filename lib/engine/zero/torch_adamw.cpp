// SPDX-License-Identifier: Apache-2.0
#include <torch/optim/adamw.h>
#include <torch/version.h>

#include "device/tensor.hpp"
#include "zero/optimizer.hpp"

namespace zs::zero {
namespace {

class TorchAdamW final : public Optimizer {
  /// How the class files a tensor's state.
  static auto key(const at::Tensor& tensor) {
#if TORCH_VERSION_MAJOR >= 2
    return static_cast<void*>(tensor.unsafeGetTensorImpl());
#else
    return c10::guts::to_string(tensor.unsafeGetTensorImpl());
#endif
  }

 public:
  explicit TorchAdamW(const OptimizerOf& unit)
      : Optimizer(unit.name, unit.parameters, Slots(unit.recipe), {}, /*bytes=*/0), segments_(unit.recipe.segments) {
    const optimizer::Settings& adamw = unit.recipe.settings;
    count_ = unit.parameters.count;
    device_ = unit.parameters.device;
    std::vector<torch::optim::OptimizerParamGroup> groups;
    for (const bool decay : {true, false}) {
      std::vector<at::Tensor> tensors;
      for (const Segment& s : segments_) {
        if (s.decay != decay) continue;
        tensors.push_back(device::tensor(master(unit.parameters).part(s.begin, s.end)).requires_grad_(true));
        placed_.emplace_back(s, tensors.back());
      }
      auto options = std::make_unique<torch::optim::AdamWOptions>(1e-3);
      options->betas({adamw.beta1, adamw.beta2}).eps(adamw.epsilon).weight_decay(decay ? adamw.weight_decay : 0);
      if (!tensors.empty()) groups.emplace_back(tensors, std::move(options));
    }
    if (!groups.empty()) optimizer_ = std::make_unique<torch::optim::AdamW>(groups);
  }

  std::int64_t bytes() override { return Optimizer::bytes() + 2 * count_ * device::size(device::Type::float32); }
  std::vector<at::Tensor> states() override {
    return {moments([](torch::optim::AdamWParamState& state) { return state.exp_avg(); }),
            moments([](torch::optim::AdamWParamState& state) { return state.exp_avg_sq(); })};
  }
  void restore(const std::vector<at::Tensor>& states, std::int64_t updates) override {
    for (auto& [segment, tensor] : placed_) {
      auto state = std::make_unique<torch::optim::AdamWParamState>();
      state->step(updates);
      state->exp_avg(states[0].narrow(0, segment.begin, tensor.numel()).clone());
      state->exp_avg_sq(states[1].narrow(0, segment.begin, tensor.numel()).clone());
      optimizer_->state()[key(tensor)] = std::move(state);
    }
  }

 private:
  std::vector<Segment> segments_;
  std::int64_t count_ = 0;
  device::Device device_;
  std::vector<std::pair<Segment, at::Tensor>> placed_;
  std::unique_ptr<torch::optim::AdamW> optimizer_;

  bool update_master(const Update& update, const device::View& gradient_sum, const device::View&,
                     const device::View&) override {
    if (!optimizer_) return false;
    for (auto& group : optimizer_->param_groups())
      static_cast<torch::optim::AdamWOptions&>(group.options()).lr(update.learning_rate);
    for (auto& [segment, tensor] : placed_) {
      // Two products, as the fused kernel forms the gradient.
      tensor.mutable_grad() = device::tensor(gradient_sum.part(segment.begin, segment.end))
                                  .to(at::kFloat)
                                  .mul(update.scale)
                                  .mul(update.clip);
    }
    optimizer_->step();
    for (auto& [segment, tensor] : placed_) tensor.mutable_grad() = at::Tensor();
    return false;
  }

  template <typename Moment>
  at::Tensor moments(Moment moment) {
    at::Tensor values = at::zeros({count_}, device::options(device_));
    for (auto& [segment, tensor] : placed_) {
      const auto found = optimizer_->state().find(key(tensor));
      if (found == optimizer_->state().end()) continue;
      values.narrow(0, segment.begin, tensor.numel())
          .copy_(moment(static_cast<torch::optim::AdamWParamState&>(*found->second)));
    }
    return values;
  }
};

}  // namespace

std::unique_ptr<Optimizer> torch_adamw(const OptimizerOf& unit) { return std::make_unique<TorchAdamW>(unit); }

}  // namespace zs::zero
