// SPDX-License-Identifier: Apache-2.0
#include "setup/choices.hpp"

#include "base/number.hpp"
#include "setup/describe.hpp"

namespace zs::setup {
namespace {

using config::setting;

/// How factors of products are rounded to 8 bits.
kernel::Scales float8(const config::Reading& config, const Settings& s) {
  const std::string how = config[setting<"training.fp8">].value_or("none");
  if (how == "none") return kernel::Scales::none;
  const auto refuse = [&](const std::string& why) { config::refuse(*config.entry(setting<"training.fp8">), why); };
  if (s.engine.dtype != at::kBFloat16)
    refuse("dtype is " + dtype_name(s.engine.dtype) + ": products of 8 bits have results of 16, use --dtype bfloat16");
  if (model::takes_images(s.model.name)) refuse("a ViT has no products of 8 bits: leave it out");
  constexpr std::int64_t kGroup = 16;
  if (s.model.seq_length % kGroup != 0)
    refuse("sequences have " + to_text(s.model.seq_length) + " tokens: choose a --seq_length that is a multiple of " +
           to_text(kGroup));
  return how == "rowwise" ? kernel::Scales::rowwise : kernel::Scales::tensorwise;
}

/// Whether gathers bring weights as the 8 bits that products take.
bool float8_gathers(const config::Reading& config, const Settings& s) {
  if (!config[setting<"training.fp8_all_gather">].value_or(false)) return false;
  const auto refuse = [&](const std::string& why) {
    config::refuse(*config.entry(setting<"training.fp8_all_gather">), why);
  };
  if (s.float8 != kernel::Scales::tensorwise)
    refuse("fp8 is " + float8_name(s.float8) + ": numbers with one scale travel in 8 bits, use --fp8 tensorwise");
  if (!plan::divided_by(s.stage).parameters) refuse("parameters are gathered in stage 3: use --zero_stage 3");
  if (s.engine.zeropp.quantized_weights) refuse("they travel as integers: leave out --zero_quantized_weights");
  const model::Adaptation& adaptation = s.model.adaptation;
  if (adaptation.adapts() || !adaptation.frozen.empty())
    refuse("some parameters are frozen (--lora_rank, --freeze): leave it out");
  return true;
}

}  // namespace

std::string float8_name(kernel::Scales scales) {
  return scales == kernel::Scales::none ? "none" : scales == kernel::Scales::rowwise ? "rowwise" : "tensorwise";
}

void choose_float8(const config::Reading& config, Settings& s) {
  if (s.model.fused) s.float8 = float8(config, s);
  s.engine.float8_gathers = float8_gathers(config, s);
}

using Packing = unit::Parameter::Packing;

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
