// SPDX-License-Identifier: Apache-2.0
// Shapes: T positions, R = D/2 rotated pairs.
#include "model/rope.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

namespace zs::model {
namespace {

/// The key "type" is of the oldest files.
std::string type_of(const Configuration& part) { return part.text("rope_type", part.text("type", "default")); }

/// As an object of config.json says.
Rope rope_in(const Configuration& config, const char* key, std::int64_t positions) {
  const Configuration part = config.part(key);
  Rope rope;
  rope.type = type_of(part);
  rope.theta = part.real("rope_theta", config.real("rope_theta", rope.theta));
  if (!(rope.theta > 1))
    part.refuse("rope_theta", "is " + nlohmann::json(rope.theta).dump() + ", expected more than 1");
  part.require("partial_rotary_factor", {1, 1.0});
  if (rope.type == "default") return rope;
  if (rope.type != "linear" && rope.type != "dynamic" && rope.type != "llama3")
    part.refuse(part.has("rope_type") ? "rope_type" : "type",
                "'" + rope.type + "' is not known (zs knows default, linear, dynamic, llama3)");
  for (const char* const needed : {"factor", "low_freq_factor", "high_freq_factor"}) {
    if (!part.has(needed) && (rope.type == "llama3" || needed == std::string("factor")))
      part.refuse(needed, "is missing, which rope_type '" + rope.type + "' needs");
  }
  rope.factor = part.real("factor", 1, 1);
  if (rope.type != "llama3") return rope;
  rope.low_freq_factor = part.real("low_freq_factor", 1);
  rope.high_freq_factor = part.real("high_freq_factor", 4);
  if (!(rope.low_freq_factor > 0) || !(rope.high_freq_factor > rope.low_freq_factor))
    part.refuse("high_freq_factor", "is not more than low_freq_factor, or that is not more than 0");
  rope.original_positions = part.integer("original_max_position_embeddings", positions);
  return rope;
}

/// Angles of a position, in float32 operation by operation as transformers has them.
at::Tensor frequencies(const Rope& rope, std::int64_t D) {
  const at::Tensor plain_R =
      1 / at::pow(rope.theta, at::arange(0, D, 2, at::TensorOptions(at::kFloat)) / static_cast<double>(D));
  if (rope.type == "default" || rope.type == "dynamic") return plain_R;
  if (rope.type == "linear") return plain_R / rope.factor;
  const auto old = static_cast<double>(rope.original_positions);
  const double low = rope.low_freq_factor, high = rope.high_freq_factor;
  const at::Tensor wave_R = 2 * std::numbers::pi / plain_R;
  const at::Tensor scaled_R = at::where(wave_R > old / low, plain_R / rope.factor, plain_R);
  const at::Tensor smooth_R = (old / wave_R - low) / (high - low);
  const at::Tensor between_R = (1 - smooth_R) * scaled_R / rope.factor + smooth_R * scaled_R;
  return at::where((wave_R < old / high).logical_not().logical_and((wave_R > old / low).logical_not()), between_R,
                   scaled_R);
}

}  // namespace

Rope rope_of(const Configuration& config, std::int64_t positions) {
  constexpr const char *kNow = "rope_parameters", *kThen = "rope_scaling";
  if (!config.has(kNow)) return rope_in(config, kThen, positions);
  Rope rope = rope_in(config, kNow, positions);
  if (!config.has(kThen)) return rope;
  // Files for old and new transformers say it twice; theta stands outside of the old key.
  Rope then = rope_in(config, kThen, positions);
  then.theta = rope.theta;
  if (to_json(then) != to_json(rope))
    config.refuse(kThen, "is " + config.values()[kThen].dump() + ", unlike rope_parameters: leave one of them out");
  return rope;
}

nlohmann::json to_json(const Rope& rope) {
  nlohmann::json json = {{"rope_type", rope.type}, {"rope_theta", rope.theta}};
  if (rope.type != "default") json["factor"] = rope.factor;
  if (rope.type == "llama3") {
    json["low_freq_factor"] = rope.low_freq_factor;
    json["high_freq_factor"] = rope.high_freq_factor;
    json["original_max_position_embeddings"] = rope.original_positions;
  }
  return json;
}

Rotation rotation(const Rope& rope, std::int64_t T, std::int64_t D, at::DeviceType device) {
  const at::NoGradGuard no_grad;
  const at::Tensor positions_T1 = at::arange(T, at::TensorOptions(at::kFloat)).unsqueeze(1);
  const at::Tensor angles_TR = positions_T1 * frequencies(rope, D).unsqueeze(0);
  return {angles_TR.cos().to(device), angles_TR.sin().to(device)};
}

}  // namespace zs::model
