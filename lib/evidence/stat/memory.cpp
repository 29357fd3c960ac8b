// SPDX-License-Identifier: Apache-2.0
#include "stat/memory.hpp"

#include <algorithm>

#include "base/number.hpp"
#include "plan/plan.hpp"

namespace zs::stat {
namespace {

bool among(const std::string& word, const std::initializer_list<const char*>& words) {
  return std::ranges::any_of(words, [&](const char* known) { return word == known; });
}

}  // namespace

double ideal_state_bytes(const metric::Run& run) {
  if (const auto said = parse_real(run.attribute("ideal_state_bytes"))) return *said;
  const auto parameters = parse_real(run.attribute("model.parameters")),
             ranks = parse_real(run.attribute("world_size"));
  const auto stage = parse_int(run.attribute("zero_stage"));
  const std::string dtype = run.attribute("dtype");
  const bool half = among(dtype, {"bf16", "bfloat16", "fp16", "float16", "half"});
  const bool full = among(dtype, {"fp32", "float32", "float"});
  if (!among(run.attribute("optimizer"), {"", "adamw", "adam"}))
    return metric::absent_real();  // it keeps other numbers
  const bool known = parameters && ranks && *ranks >= 1 && stage && plan::is_stage(*stage) && (half || full);
  if (!known) return metric::absent_real();
  return plan::state_bytes(*parameters, static_cast<int>(*stage), *ranks, half ? 2 : 4);
}

}  // namespace zs::stat
