// SPDX-License-Identifier: Apache-2.0
#include "setup/choices.hpp"

namespace zs::setup {

using Packing = unit::Parameter::Packing;
using config::setting;

std::string nf4_name(const Settings& settings) {
  const Packing packing = settings.model.adaptation.packing;
  return packing == Packing::none ? "none" : packing == Packing::nf4 ? "single" : "double";
}

void choose_nf4(const config::Reading& config, Settings& s) {
  if (!s.model.adaptation.adapts()) return;
  const std::string how = config[setting<"model.nf4">].value_or("none");
  if (how == "none") return;
  const auto refuse = [&](const std::string& why) { config::refuse(*config.entry(setting<"model.nf4">), why); };
  if (s.engine.dtype == at::kHalf)
    refuse("dtype is float16: matrices of 4 bits are widened to 16 or 32 bits of a larger range, use --dtype bfloat16");
  if (s.float8 != kernel::Scales::none) refuse("products round their factors to 8 bits, these again: leave out --fp8");
  if (s.engine.offload.parameters != zero::Place::device)
    refuse("matrices of 4 bits stay in device memory: leave out --offload_param");
  if (s.engine.zeropp.secondary > 0) refuse("they are gathered from all ranks: leave out --zero_hpz_partition_size");
  s.model.adaptation.packing = how == "double" ? Packing::nested_nf4 : Packing::nf4;
}

}  // namespace zs::setup
