// SPDX-License-Identifier: Apache-2.0
#include "verify/plain_optimizer.hpp"

#include <torch/optim/adamw.h>

#include <cmath>

#include "unit/arithmetic.hpp"
#include "verify/arithmetic.hpp"

namespace zs::verify {

using optimizer::Kind;

PlainOptimizer::PlainOptimizer(const unit::Units& units, const Tensors& masters, const ReferenceSettings& settings)
    : settings_(settings) {
  for (std::size_t unit = 0; unit < masters.size(); ++unit) {
    const bool block = unit > 0 && unit + 1 < masters.size();
    for (std::size_t i = 0; i < masters[unit].size(); ++i) {
      const at::Tensor& parameter = masters[unit][i];
      if (!units[unit]->parameters()[i].trained) continue;
      plain_.push_back({parameter,
                        settings.decay_all || units[unit]->parameters()[i].decay,
                        block && parameter.dim() == 2,
                        {at::zeros_like(parameter), at::zeros_like(parameter)}});
    }
  }
  if (settings.torch_adamw) make_torch();
}

PlainOptimizer::~PlainOptimizer() = default;

/// Uses PyTorch's own class, whose square root is LibTorch's (MKL's is off by one ulp in a fifth of all cases).
void PlainOptimizer::make_torch() {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const bool decays : {true, false}) {
    std::vector<at::Tensor> tensors;
    for (const Plain& p : plain_) {
      if (p.decays == decays) tensors.push_back(p.parameter);
    }
    const optimizer::Settings& s = settings_.optimizer;
    auto options = std::make_unique<torch::optim::AdamWOptions>(1e-3);
    options->betas({s.beta1, s.beta2}).eps(s.epsilon).weight_decay(decays ? s.weight_decay : 0);
    if (!tensors.empty()) groups.emplace_back(tensors, std::move(options));
  }
  torch_ = std::make_unique<torch::optim::AdamW>(groups);
}

void PlainOptimizer::step(double learning_rate) {
  if (torch_) {
    for (auto& group : torch_->param_groups())
      static_cast<torch::optim::AdamWOptions&>(group.options()).lr(learning_rate);
    torch_->step();
    return;
  }
  const at::NoGradGuard no_grad;
  ++steps_;
  for (Plain& p : plain_) {
    switch (settings_.optimizer.kind) {
      case Kind::adamw:
        adam(p, learning_rate, /*decay_in_gradient=*/false);
        break;
      case Kind::adam:
        adam(p, learning_rate, /*decay_in_gradient=*/true);
        break;
      case Kind::sgd:
        sgd(p, learning_rate);
        break;
      case Kind::lion:
        lion(p, learning_rate);
        break;
      case Kind::adamw_8bit:
        adam(p, learning_rate, /*decay_in_gradient=*/false);
        if (p.parameter.numel() >= optimizer::kLeastCoded) {
          p.kept[0] = in_8_bits(p.kept[0], /*has_sign=*/true);
          p.kept[1] = in_8_bits(p.kept[1], /*has_sign=*/false);
        }
        break;
      case Kind::muon:
        if (p.matrix)
          muon(p, learning_rate);
        else
          adam(p, learning_rate * settings_.optimizer.adamw_rate_ratio, /*decay_in_gradient=*/false);
        break;
    }
  }
}

/// In the lines of torch.optim.AdamW and Adam, every operation rounded correctly.
void PlainOptimizer::adam(Plain& p, double learning_rate, bool decay_in_gradient) const {
  const optimizer::Settings& s = settings_.optimizer;
  const double correction1 = s.correct_bias ? 1 - std::pow(s.beta1, steps_) : 1,
               correction2 = s.correct_bias ? 1 - std::pow(s.beta2, steps_) : 1;
  at::Tensor gradient = p.parameter.grad();
  if (p.decays && !decay_in_gradient) p.parameter.mul_(1 - learning_rate * s.weight_decay);
  if (p.decays && decay_in_gradient && s.weight_decay != 0) gradient = gradient.add(p.parameter, s.weight_decay);
  p.kept[0].mul_(s.beta1).add_(gradient, 1 - s.beta1);
  p.kept[1].mul_(s.beta2).addcmul_(gradient, gradient, 1 - s.beta2);
  // In float64, then rounded: the correctly rounded root, whatever LibTorch's library does.
  const at::Tensor root = p.kept[1].to(at::kDouble).sqrt().to(at::kFloat);
  p.parameter.addcdiv_(p.kept[0], (root / std::sqrt(correction2)).add_(s.epsilon), -(learning_rate / correction1));
}

/// In the lines of torch.optim.SGD, without dampening.
void PlainOptimizer::sgd(Plain& p, double learning_rate) const {
  const optimizer::Settings& s = settings_.optimizer;
  at::Tensor gradient = p.parameter.grad();
  if (p.decays && s.weight_decay != 0) gradient = gradient.add(p.parameter, s.weight_decay);
  if (s.momentum != 0) {
    p.kept[0].mul_(s.momentum).add_(gradient);
    gradient = s.nesterov ? gradient.add(p.kept[0], s.momentum) : p.kept[0];
  }
  p.parameter.add_(gradient, -learning_rate);
}

/// Algorithm 2 of Chen et al. 2023. The sign of a NaN is one.
void PlainOptimizer::lion(Plain& p, double learning_rate) const {
  const optimizer::Settings& s = settings_.optimizer;
  const at::Tensor gradient = p.parameter.grad();
  if (p.decays) p.parameter.mul_(1 - learning_rate * s.weight_decay);
  const at::Tensor direction = p.kept[0].mul(s.beta1).add_(gradient, 1 - s.beta1);
  p.parameter.add_(at::where(direction.isnan(), direction, direction.sign()), -learning_rate);
  p.kept[0].mul_(s.beta2).add_(gradient, 1 - s.beta2);
}

/// In the lines of torch.optim.Muon.
void PlainOptimizer::muon(Plain& p, double learning_rate) const {
  const optimizer::Settings& s = settings_.optimizer;
  const at::Tensor gradient = p.parameter.grad();
  p.kept[0].lerp_(gradient, 1 - s.momentum);
  const at::Tensor direction = s.nesterov ? gradient.lerp(p.kept[0], s.momentum) : p.kept[0];
  const auto rows = static_cast<double>(p.parameter.size(-2)), columns = static_cast<double>(p.parameter.size(-1));
  const double ratio =
      s.match_rms ? 0.2 * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns));
  if (p.decays) p.parameter.mul_(1 - learning_rate * s.weight_decay);
  p.parameter.add_(orthogonal(direction).to(p.parameter.device()).to(at::kFloat), -(learning_rate * ratio));
}

/// Newton-Schulz as torch.optim.Muon has it, on the device that is verified; where processors have no products of
/// bfloat16, of float32, rounded.
at::Tensor PlainOptimizer::orthogonal(const at::Tensor& direction) const {
  at::Tensor x = direction.to(at::kBFloat16).to(settings_.device);
  const bool tall = x.size(0) > x.size(1);
  if (tall) x = x.t();
  x = x / at::clamp_min(x.to(at::kDouble).norm().to(at::kBFloat16), 1e-7);
  const auto in = [&](const at::Tensor& x) {
    return x.is_cpu() && unit::bfloat16_products().empty() ? x.to(at::kFloat) : x;
  };
  const auto rounded = [](const at::Tensor& x) { return x.to(at::kBFloat16); };
  for (int i = 0; i < settings_.optimizer.ns_steps; ++i) {
    const at::Tensor a = rounded(at::matmul(in(x), in(x).t()));
    const at::Tensor b = rounded(at::addmm(in(a), in(a), in(a), -4.7750, 2.0315));
    x = rounded(at::addmm(in(x), in(b), in(x), 3.4445));
  }
  return tall ? x.t() : x;
}

}  // namespace zs::verify
