// SPDX-License-Identifier: Apache-2.0
#include "setup/describe.hpp"

#include "base/number.hpp"
#include "config/known.hpp"
#include "kernel/calibration.hpp"
#include "registry/run.hpp"
#include "unit/arithmetic.hpp"

namespace zs::setup {

attribute::Facts configured(const config::Config& config) {
  attribute::Facts facts;
  for (const auto& [key, value] : registry::settings(config)) {
    if (config::known(key) && !value.empty()) facts[std::string(attribute::primary(key))] = value;
  }
  return facts;
}

std::string products(const device::Device& device, const Settings& settings) {
  if (device.kind != device::Device::Kind::cpu) return kernel::products_in_use();
  const zero::Settings& engine = settings.engine;
  if (engine.autocast == at::kBFloat16) return unit::bfloat16_products();
  if (engine.dtype == at::kFloat) return "";
  const bool narrow = engine.dtype == at::kBFloat16 && !unit::bfloat16_products().empty();
  return narrow ? unit::bfloat16_products() : "float32";
}

attribute::Facts chosen_arithmetic(const Settings& settings) {
  const zero::Settings& engine = settings.engine;
  const auto truth = [](bool value) { return std::string(value ? "true" : "false"); };
  const bool experts = model::has_experts(settings.model.name);
  attribute::Facts facts = {{"dtype", dtype_name(engine.dtype)},
                            {"autocast", autocast_name(settings)},
                            {"compile", truth(settings.model.fused)},
                            {"reduction", experts ? "exact, experts apart" : "exact"},
                            {"sequence_chunks", to_text(std::int64_t{settings.chunks})},
                            {"deterministic", truth(settings.deterministic)},
                            {"tf32", truth(settings.tf32)},
                            {"nf4", nf4_name(settings)},
                            {"fp8", float8_name(settings.float8)},
                            {"fp8_all_gather", truth(engine.float8_gathers)},
                            {"quantized_weights", truth(engine.zeropp.quantized_weights)},
                            {"quantized_gradients", truth(engine.zeropp.quantized_gradients)},
                            {"use_torch_adam", truth(engine.use_torch_adam)}};
  if (!engine.scales()) return facts;
  const zero::LossScaling& scaling = engine.loss_scaling;
  facts["static_loss_scale"] = to_text(scaling.fixed);
  facts["initial_scale_power"] = to_text(std::int64_t{scaling.initial_power});
  facts["loss_scale_window"] = to_text(scaling.window);
  facts["hysteresis"] = to_text(std::int64_t{scaling.hysteresis});
  facts["consecutive_hysteresis"] = truth(scaling.consecutive);
  facts["min_loss_scale"] = to_text(scaling.minimum);
  return facts;
}

attribute::Facts arithmetic(const device::Device& device, const Settings& settings) {
  const unit::Arithmetic here = unit::arithmetic();
  attribute::Facts facts = {{"cpu", unit::processor("model name")},
                            {"instruction_set", here.instruction_set},
                            {"torch", here.torch},
                            {"blas", here.blas},
                            {"threads", to_text(static_cast<std::int64_t>(here.threads))}};
  facts.merge(device::arithmetic(device));
  facts["products"] = products(device, settings);
  return facts;
}

}  // namespace zs::setup
