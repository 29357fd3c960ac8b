// SPDX-License-Identifier: Apache-2.0
// Shapes: T positions, R = D/2 rotated pairs; with partial rotation, half of the rotated part of D.
#include "model/rope.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "base/words.hpp"

namespace zs::model {
namespace {

constexpr std::array kTypes = {"default", "linear", "dynamic", "llama3", "yarn", "longrope"};

/// The key "type" is of the oldest files.
std::string type_of(const Configuration& part, bool phi) {
  const std::string type = part.text("rope_type", part.text("type", "default"));
  if (phi && (type == "su" || type == "yarn")) return "longrope";
  if (std::ranges::find(kTypes, type) != kTypes.end()) return type;
  part.refuse(part.has("rope_type") ? "rope_type" : "type",
              "'" + type + "' is not known (zs knows " + joined(kTypes) + ")");
}

void require(const Configuration& part, const std::string& type, const char* key) {
  if (!part.has(key)) part.refuse(key, "is missing, which rope_type '" + type + "' needs");
}

std::vector<double> numbers(const Configuration& part, const char* key) {
  const nlohmann::json& list = part.values()[key];
  std::vector<double> numbers;
  const bool good = list.is_array() && !list.empty() && std::ranges::all_of(list, [](const nlohmann::json& each) {
                      return each.is_number() && each.get<double>() > 0 && std::isfinite(each.get<double>());
                    });
  if (!good) part.refuse(key, "is not a list of numbers of more than 0");
  for (const nlohmann::json& each : list) numbers.push_back(each.get<double>());
  return numbers;
}

/// The amplitude that the paper of yarn suggests; `scale` is mscale.
double magnitude(double factor, double scale) { return factor <= 1 ? 1 : 0.1 * scale * std::log(factor) + 1; }

/// Fills in the keys that transformers may leave out: the factor by which the context was extended, and the amplitude
/// for it.
void stretched(Rope& rope, const Configuration& part, std::int64_t positions) {
  const double longer = static_cast<double>(positions) / static_cast<double>(rope.original_positions);
  rope.factor = part.real("factor", longer);
  if (rope.type == "longrope") {
    rope.amplitude =
        rope.factor <= 1
            ? 1
            : std::sqrt(1 + std::log(rope.factor) / std::log(static_cast<double>(rope.original_positions)));
  } else {
    const double scale = part.real("mscale", 0), of_all = part.real("mscale_all_dim", 0);
    rope.amplitude = scale > 0 && of_all > 0 ? magnitude(rope.factor, scale) / magnitude(rope.factor, of_all)
                                             : magnitude(rope.factor, 1);
  }
  rope.amplitude = part.real("attention_factor", rope.amplitude);
  if (!(rope.amplitude > 0)) part.refuse("attention_factor", "is 0, expected more");
}

/// Angles of a position, in float32 operation by operation as transformers has them, for sequences of T.
at::Tensor frequencies(const Rope& rope, std::int64_t D, std::int64_t T) {
  const at::Tensor powers_R =
      at::pow(rope.theta, at::arange(0, D, 2, at::TensorOptions(at::kFloat)) / static_cast<double>(D));
  if (rope.type == "longrope") {
    const std::vector<double>& factors = T > rope.original_positions ? rope.long_factor : rope.short_factor;
    return 1 / (at::tensor(factors, at::TensorOptions(at::kDouble)).to(at::kFloat) * powers_R);
  }
  const at::Tensor plain_R = 1 / powers_R;
  if (rope.type == "default" || rope.type == "dynamic") return plain_R;
  if (rope.type == "linear") return plain_R / rope.factor;
  const auto old = static_cast<double>(rope.original_positions);
  if (rope.type == "yarn") {
    const double d = static_cast<double>(D);
    const auto turns = [&](double count) {
      return d * std::log(old / (count * 2 * std::numbers::pi)) / (2 * std::log(rope.theta));
    };
    double low = turns(rope.beta_fast), high = turns(rope.beta_slow);
    if (rope.truncate) low = std::floor(low), high = std::ceil(high);
    low = std::max(low, 0.0), high = std::min(high, d - 1);
    if (low == high) high += 0.001;
    const at::Tensor ramp_R = ((at::arange(0, D / 2, at::TensorOptions(at::kFloat)) - low) / (high - low)).clamp(0, 1);
    const at::Tensor kept_R = 1 - ramp_R, divided_R = 1 / (rope.factor * powers_R);
    return divided_R * (1 - kept_R) + plain_R * kept_R;
  }
  const double low = rope.low_freq_factor, high = rope.high_freq_factor;
  const at::Tensor wave_R = 2 * std::numbers::pi / plain_R;
  const at::Tensor scaled_R = at::where(wave_R > old / low, plain_R / rope.factor, plain_R);
  const at::Tensor smooth_R = (old / wave_R - low) / (high - low);
  const at::Tensor between_R = (1 - smooth_R) * scaled_R / rope.factor + smooth_R * scaled_R;
  return at::where((wave_R < old / high).logical_not().logical_and((wave_R > old / low).logical_not()), between_R,
                   scaled_R);
}

}  // namespace

Rope rope_in(const Configuration& part, const RopeDefaults& defaults) {
  part.require_known(
      "rope_type type rope_theta partial_rotary_factor factor low_freq_factor high_freq_factor "
      "original_max_position_embeddings attention_factor beta_fast beta_slow mscale mscale_all_dim truncate "
      "short_factor long_factor",
      "rotary positions");
  Rope rope;
  rope.type = type_of(part, defaults.phi);
  rope.theta = part.real("rope_theta", defaults.theta);
  if (!(rope.theta > 1))
    part.refuse("rope_theta", "is " + nlohmann::json(rope.theta).dump() + ", expected more than 1");
  rope.fraction = part.real("partial_rotary_factor", defaults.fraction);
  if (rope.fraction != 1 && !defaults.phi)
    part.refuse("partial_rotary_factor",
                "is " + nlohmann::json(rope.fraction).dump() + ", zs knows 1 of this model_type");
  if (!(rope.fraction > 0 && rope.fraction <= 1))
    part.refuse("partial_rotary_factor",
                "is " + nlohmann::json(rope.fraction).dump() + ", expected more than 0, up to 1");
  if (rope.type == "default") return rope;
  if (rope.type == "linear" || rope.type == "dynamic" || rope.type == "llama3") require(part, rope.type, "factor");
  rope.factor = part.real("factor", 1, 1);
  if (rope.type == "linear" || rope.type == "dynamic") return rope;
  rope.original_positions = defaults.original_positions > 0
                                ? defaults.original_positions
                                : part.integer("original_max_position_embeddings", defaults.positions);
  if (rope.type == "llama3") {
    for (const char* const needed : {"low_freq_factor", "high_freq_factor"}) require(part, rope.type, needed);
    rope.low_freq_factor = part.real("low_freq_factor", 1);
    rope.high_freq_factor = part.real("high_freq_factor", 4);
    if (!(rope.low_freq_factor > 0) || !(rope.high_freq_factor > rope.low_freq_factor))
      part.refuse("high_freq_factor", "is not more than low_freq_factor, or that is not more than 0");
    return rope;
  }
  stretched(rope, part, defaults.positions);
  if (rope.type == "longrope") {
    for (const char* const needed : {"short_factor", "long_factor"}) require(part, rope.type, needed);
    rope.short_factor = numbers(part, "short_factor");
    rope.long_factor = numbers(part, "long_factor");
    return rope;
  }
  const auto or_else = [](double value, double usual) { return value > 0 ? value : usual; };  // 0 is as good as none
  rope.beta_fast = or_else(part.real("beta_fast", 0), 32);
  rope.beta_slow = or_else(part.real("beta_slow", 0), 1);
  rope.truncate = part.boolean("truncate", true);
  return rope;
}

Rope rope_of(const Configuration& config, const RopeDefaults& family) {
  constexpr const char *kNow = "rope_parameters", *kThen = "rope_scaling";
  RopeDefaults defaults = family;
  defaults.theta = config.real("rope_theta", defaults.theta);
  defaults.fraction = config.real("partial_rotary_factor", defaults.fraction);
  if (!config.has(kNow)) return rope_in(config.part(kThen), defaults);
  const Rope rope = rope_in(config.part(kNow), defaults);
  if (!config.has(kThen)) return rope;
  // Files for old and new transformers say it twice; theta may stand outside of both.
  const Rope then = rope_in(config.part(kThen), defaults);
  if (then != rope)
    config.refuse(kThen,
                  "is " + config.values()[kThen].dump() + ", unlike rope_parameters" +
                      (then.theta == rope.theta ? ""
                                                : ": without rope_theta it has " + nlohmann::json(then.theta).dump() +
                                                      ", and that " + nlohmann::json(rope.theta).dump()) +
                      ": leave one of them out");
  return rope;
}

nlohmann::json to_json(const Rope& rope) {
  nlohmann::json json = {{"rope_type", rope.type}, {"rope_theta", rope.theta}};
  if (rope.fraction != 1) json["partial_rotary_factor"] = rope.fraction;
  if (rope.type != "default") json["factor"] = rope.factor;
  if (rope.original_positions > 0) json["original_max_position_embeddings"] = rope.original_positions;
  if (rope.type == "llama3") {
    json["low_freq_factor"] = rope.low_freq_factor;
    json["high_freq_factor"] = rope.high_freq_factor;
  }
  if (rope.type == "yarn" || rope.type == "longrope") json["attention_factor"] = rope.amplitude;
  if (rope.type == "longrope") {
    json["short_factor"] = rope.short_factor;
    json["long_factor"] = rope.long_factor;
  }
  if (rope.type == "yarn") {
    json["beta_fast"] = rope.beta_fast;
    json["beta_slow"] = rope.beta_slow;
    json["truncate"] = rope.truncate;
  }
  return json;
}

Rotation Rotation::of(const unit::Batch& batch) const {
  if (!batch.documents) {
    const std::int64_t whole = batch.whole > 0 ? batch.whole : batch.inputs.size(1),
                       first = batch.first + (whole > shorter ? shorter : 0);
    if (first == 0) return *this;
    return {cos_TR.slice(0, first), sin_TR.slice(0, first)};
  }
  at::Tensor places_N = batch.documents.positions.view({-1});
  if (shorter > 0) places_N = places_N + batch.documents.sizes.view({-1}).gt(shorter) * shorter;
  return {cos_TR.index_select(0, places_N), sin_TR.index_select(0, places_N)};
}

Rotation rotation(const Rope& rope, std::int64_t T, std::int64_t D, at::DeviceType device) {
  const at::NoGradGuard no_grad;
  const auto turned = static_cast<std::int64_t>(static_cast<double>(D) * rope.fraction);
  const auto of_samples = [&](std::int64_t count) -> Rotation {
    const at::Tensor positions_T1 = at::arange(count, at::TensorOptions(at::kFloat)).unsqueeze(1);
    const at::Tensor angles_TR = positions_T1 * frequencies(rope, turned, count).unsqueeze(0);
    const auto scaled = [&](const at::Tensor& wave_TR) {
      return (rope.amplitude == 1 ? wave_TR : wave_TR * rope.amplitude).to(device);
    };
    return {scaled(angles_TR.cos()), scaled(angles_TR.sin())};
  };
  const Rotation longest = of_samples(T);
  if (rope.type != "longrope" || T <= rope.original_positions) return longest;
  const Rotation shorter = of_samples(rope.original_positions);
  return {at::cat({shorter.cos_TR, longest.cos_TR}), at::cat({shorter.sin_TR, longest.sin_TR}),
          rope.original_positions};
}

}  // namespace zs::model
