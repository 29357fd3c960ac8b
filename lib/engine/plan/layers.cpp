// SPDX-License-Identifier: Apache-2.0
#include "plan/layers.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/words.hpp"
#include "plan/memory.hpp"
#include "plan/offload.hpp"

namespace zs::plan {
namespace {

/// Keys that the sizes of units and activations depend on, besides the number of layers.
constexpr std::string_view kSizes =
    "num_experts num_local_experts moe_intermediate_size num_experts_per_tok model_type n_embd n_inner n_head "
    "n_positions hidden_size intermediate_size num_attention_heads num_key_value_heads head_dim vocab_size "
    "tie_word_embeddings attention_bias mlp_bias image_size patch_size num_channels qkv_bias";
constexpr std::string_view kLayers = "num_hidden_layers n_layer";

/// Units [begin, end), layers of `period` units each.
struct Run {
  std::size_t begin = 0, end = 0, period = 1;
  std::size_t size() const { return end - begin; }
  bool has(int unit) const { return unit >= static_cast<int>(begin) && unit < static_cast<int>(end); }
};

/// "layers.#.experts" for "layers.3.experts", so that all layers have the same name; "" for a name without a number.
std::string numbered(const std::string& name, const std::string& number = "#") {
  std::vector<std::string> words = zs::split(name, ".");
  const auto last = std::ranges::find_if(words, [](const std::string& word) {
    return !word.empty() && std::ranges::all_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
  });
  if (last == words.end()) return "";
  *last = number;
  return joined(words, ".");
}

bool alike(const Unit& a, const Unit& b) {
  return numbered(a.name) == numbered(b.name) && b.numel == a.numel && b.frozen == a.frozen;
}

/// The longest run of like layers: of one unit each, or of one and its experts.
Run layers(const std::vector<Unit>& units) {
  Run longest;
  for (std::size_t begin = 0; begin < units.size(); ++begin) {
    if (numbered(units[begin].name).empty()) continue;
    const bool has_experts = begin + 1 < units.size() && units[begin + 1].name.starts_with(units[begin].name + ".");
    const std::size_t period = has_experts ? 2 : 1;
    std::size_t end = begin + period;
    while (end < units.size() && alike(units[end - period], units[end])) ++end;
    const Run run{begin, begin + (end - begin) / period * period, period};
    if (run.size() > longest.size()) longest = run;
  }
  return longest;
}

}  // namespace

std::int64_t layers_of(const std::string& folder, const Profile& profile) {
  const std::string path = folder + "/config.json";
  const nlohmann::json theirs = read_json(path);
  if (!theirs.is_object()) throw Error(path, 0, "is not a JSON object");
  const nlohmann::json ours = nlohmann::json::parse(profile.config, nullptr, /*allow_exceptions=*/false);
  for (const std::string_view word : words_of(kSizes)) {
    const std::string key(word);
    // A null follows from the other keys.
    if (theirs.value(key, nlohmann::json()).is_null() || ours.value(key, nlohmann::json()).is_null() ||
        theirs[key] == ours[key])
      continue;
    throw Error(path, 0,
                key + " is " + theirs[key].dump() + ", and of the profile's model " + ours[key].dump() +
                    ": measure a step of this one, with zs-train --deepcompile; some of its layers are enough");
  }
  for (const std::string_view word : words_of(kLayers)) {
    const std::string key(word);
    if (theirs.contains(key) && theirs[key].is_number_unsigned() && theirs[key].get<std::int64_t>() > 0)
      return theirs[key].get<std::int64_t>();
  }
  throw Error(path, 0, "says no number of layers: num_hidden_layers or n_layer");
}

Profile with_layers(const Profile& profile, std::int64_t count) {
  const std::vector<Unit>& then = profile.shape.units;
  const Run run = layers(then);
  if (run.size() == 0) throw Error("the profile's model has no numbered layers: give none of another number");
  Profile made = profile;
  const std::size_t period = run.period, behind = static_cast<std::size_t>(count) * period;
  const auto shifted = [&](int unit) {
    return unit < static_cast<int>(run.end) ? unit : unit + static_cast<int>(behind) - static_cast<int>(run.size());
  };
  std::vector<Unit>& units = made.shape.units;
  units.assign(then.begin(), then.begin() + static_cast<std::ptrdiff_t>(run.begin));
  for (std::size_t i = 0; i < behind; ++i) {
    Unit unit = then[run.begin + i % period];
    unit.name = numbered(unit.name, std::to_string(i / period));
    if (run.has(unit.tied_to)) unit.tied_to += static_cast<int>(i / period * period);
    units.push_back(unit);
  }
  for (std::size_t i = run.end; i < then.size(); ++i) {
    units.push_back(then[i]);
    units.back().tied_to = shifted(then[i].tied_to);
  }
  offload_share(made.shape, offloaded_share(profile.shape));

  made.timings.clear();
  std::map<std::pair<Kind, std::size_t>, std::pair<Timing, int>> sums;  // of the layers, by unit of the period
  for (Timing timing : profile.timings) {
    if (run.has(timing.unit)) {
      auto& [sum, number] = sums[{timing.kind, (static_cast<std::size_t>(timing.unit) - run.begin) % period}];
      sum.seconds += timing.seconds, sum.growth += timing.growth, ++number;
      continue;
    }
    if (timing.kind == Kind::norm) timing.seconds *= trained(made.shape) / trained(profile.shape);
    timing.unit = shifted(timing.unit);
    made.timings.push_back(timing);
  }
  for (const auto& [place, sum] : sums) {
    for (std::size_t i = place.second; i < behind; i += period)
      made.timings.push_back({place.first, static_cast<int>(run.begin + i), sum.first.seconds / sum.second,
                              sum.first.growth / sum.second});
  }
  const bool checkpointing = profile.shape.activation_checkpointing;
  made.state += kept_bytes(baseline(made.shape), made.bytes_per_parameter) -
                kept_bytes(baseline(profile.shape), made.bytes_per_parameter);
  made.peak += profile.overlaps ? peak_bytes(baseline(made.shape), made) - peak_bytes(baseline(profile.shape), profile)
                                : made.state - profile.state + activation_bytes(made, checkpointing) -
                                      activation_bytes(profile, checkpointing);
  return made;
}

}  // namespace zs::plan
