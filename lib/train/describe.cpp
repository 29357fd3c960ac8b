// SPDX-License-Identifier: Apache-2.0
#include "train/describe.hpp"

#include "base/number.hpp"
#include "config/known.hpp"
#include "kernel/calibration.hpp"
#include "registry/run.hpp"
#include "unit/arithmetic.hpp"

namespace zs::train {

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

}  // namespace zs::train
