// SPDX-License-Identifier: Apache-2.0
#include "plan/layers.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "plan/memory.hpp"

namespace zs::plan {
namespace {

/// Keys that the sizes of units and activations depend on, besides the number of layers.
constexpr std::array kSizes = {"num_experts",
                               "num_local_experts",
                               "moe_intermediate_size",
                               "num_experts_per_tok",
                               "model_type",
                               "n_embd",
                               "n_inner",
                               "n_head",
                               "n_positions",
                               "hidden_size",
                               "intermediate_size",
                               "num_attention_heads",
                               "num_key_value_heads",
                               "head_dim",
                               "vocab_size",
                               "tie_word_embeddings",
                               "attention_bias",
                               "mlp_bias",
                               "image_size",
                               "patch_size",
                               "num_channels",
                               "qkv_bias"};
constexpr std::array kLayers = {"num_hidden_layers", "n_layer"};

/// Units [begin, end).
struct Run {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

/// "h." of "h.3"; "" of a name without a number.
std::string prefix(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  const bool numbered = dot != std::string::npos && dot + 1 < name.size() &&
                        std::all_of(name.begin() + static_cast<std::ptrdiff_t>(dot) + 1, name.end(),
                                    [](unsigned char c) { return std::isdigit(c) != 0; });
  return numbered ? name.substr(0, dot + 1) : "";
}

Run layers(const std::vector<Unit>& units) {
  Run longest;
  for (std::size_t begin = 0, end = 0; begin < units.size(); begin = std::max(end, begin + 1)) {
    const std::string its = prefix(units[begin].name);
    for (end = begin; end < units.size() && !its.empty() && prefix(units[end].name) == its &&
                      units[end].numel == units[begin].numel && units[end].frozen == units[begin].frozen;)
      ++end;
    if (end > begin && end - begin > longest.size()) longest = {begin, end};
  }
  return longest;
}

}  // namespace

std::int64_t layers_of(const std::string& folder, const Profile& profile) {
  const std::string path = folder + "/config.json";
  const nlohmann::json theirs = nlohmann::json::parse(Input(path).read_all(), nullptr, /*allow_exceptions=*/false);
  if (!theirs.is_object()) throw Error(path, 0, "is no JSON object");
  const nlohmann::json ours = nlohmann::json::parse(profile.config, nullptr, /*allow_exceptions=*/false);
  for (const char* const key : kSizes) {
    // A null follows from the other keys.
    if (theirs.value(key, nlohmann::json()).is_null() || ours.value(key, nlohmann::json()).is_null() ||
        theirs[key] == ours[key])
      continue;
    throw Error(path, 0,
                std::string(key) + " is " + theirs[key].dump() + ", and of the profile's model " + ours[key].dump() +
                    ": measure a step of this one, with zs-train --deepcompile; some of its layers are enough");
  }
  for (const char* const key : kLayers) {
    if (theirs.contains(key) && theirs[key].is_number_unsigned() && theirs[key].get<std::int64_t>() > 0)
      return theirs[key].get<std::int64_t>();
  }
  throw Error(path, 0, "says no number of layers: num_hidden_layers or n_layer");
}

Profile with_layers(const Profile& profile, std::int64_t count) {
  const std::vector<Unit>& then = profile.shape.units;
  const Run run = layers(then);
  if (run.size() == 0) throw Error("the profile's model has no numbered layers: give none of another number");
  Profile all = profile;
  const auto shifted = [&](int unit) {
    return unit < static_cast<int>(run.end) ? unit : unit + static_cast<int>(count) - static_cast<int>(run.size());
  };
  std::vector<Unit>& units = all.shape.units;
  units.assign(then.begin(), then.begin() + static_cast<std::ptrdiff_t>(run.begin));
  for (std::int64_t i = 0; i < count; ++i) {
    Unit layer = then[run.begin];
    layer.name = prefix(layer.name) + std::to_string(i);
    units.push_back(layer);
  }
  units.insert(units.end(), then.begin() + static_cast<std::ptrdiff_t>(run.end), then.end());
  for (Unit& unit : units) unit.tied_to = shifted(unit.tied_to);

  all.timings.clear();
  std::map<Kind, std::pair<Timing, int>> sums;  // of the layers
  for (Timing timing : profile.timings) {
    const bool of_layer = timing.unit >= static_cast<int>(run.begin) && timing.unit < static_cast<int>(run.end);
    if (of_layer) {
      auto& [sum, number] = sums[timing.kind];
      sum.seconds += timing.seconds, sum.growth += timing.growth, ++number;
      continue;
    }
    if (timing.kind == Kind::norm) timing.seconds *= trained(all.shape) / trained(profile.shape);
    timing.unit = shifted(timing.unit);
    all.timings.push_back(timing);
  }
  for (const auto& [kind, its] : sums) {
    for (std::int64_t i = 0; i < count; ++i) {
      all.timings.push_back({kind, static_cast<int>(run.begin) + static_cast<int>(i), its.first.seconds / its.second,
                             its.first.growth / its.second});
    }
  }
  const bool checkpointing = profile.shape.activation_checkpointing;
  all.state += kept_bytes(baseline(all.shape), all.bytes_per_parameter) -
               kept_bytes(baseline(profile.shape), all.bytes_per_parameter);
  all.peak += profile.overlaps ? peak_bytes(baseline(all.shape), all) - peak_bytes(baseline(profile.shape), profile)
                               : all.state - profile.state + activation_bytes(all, checkpointing) -
                                     activation_bytes(profile, checkpointing);
  return all;
}

}  // namespace zs::plan
