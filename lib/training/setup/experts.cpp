// SPDX-License-Identifier: Apache-2.0
#include "setup/choices.hpp"

#include "base/error.hpp"
#include "base/number.hpp"

namespace zs::setup {

void choose_experts(const config::Reading& config, Settings& s) {
  if (!model::has_experts(s.model.name)) return;
  constexpr auto kRanks = config::setting<"zero.expert_parallel">;
  s.experts = static_cast<int>(config[kRanks]);
  if (s.experts == 1) return;
  const auto refuse = [&](const std::string& why) { config::refuse(*config.entry(kRanks), why); };
  if (s.ranks % s.experts != 0)
    refuse("does not divide the " + std::to_string(s.ranks) + " ranks, which divide the experts");
  if (s.chunks > 1) refuse("sequences are computed in chunks: leave out one of the two");
  const model::Adaptation& how = s.model.adaptation;
  if (how.adapts() || !how.frozen.empty())
    refuse("experts are divided where all of them are trained: leave out adapters and --freeze");
  const zero::ZeroPlusPlus& zeropp = s.engine.zeropp;
  if (zeropp.secondary > 0 || zeropp.quantized_weights || zeropp.quantized_gradients)
    refuse("experts are divided without ZeRO++: leave out hpZ, qwZ and qgZ");
  for (const auto& unit : model::make(s.model).units) {
    if (unit->experts() % s.experts != 0)
      refuse("does not divide the " + to_text(unit->experts()) + " experts of a layer");
  }
}

}  // namespace zs::setup
