// SPDX-License-Identifier: Apache-2.0
#include "plan/profile.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"

namespace zs::plan {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 2;

/// Reads one value after another, and says which is missing or wrong.
class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  template <typename T>
  T get(const char* key) const {
    const auto found = json_.find(key);
    if (!json_.is_object() || found == json_.end()) fail(key, "is missing");
    try {
      return found->get<T>();
    } catch (const Json::exception&) {
      fail(key, "is not what it should be: " + found->dump().substr(0, 40));
    }
  }
  bool has(const char* key) const { return json_.is_object() && json_.contains(key); }
  double at_least_zero(const char* key) const {
    const auto value = get<double>(key);
    if (!(value >= 0)) fail(key, "is less than 0");
    return value;
  }
  template <typename T>
  T within(const char* key, std::int64_t lowest, std::int64_t highest) const {
    const auto value = get<std::int64_t>(key);
    if (value < lowest || value > highest)
      fail(key, "is " + std::to_string(value) + ", not in " + std::to_string(lowest) + ".." + std::to_string(highest));
    return static_cast<T>(value);
  }
  Reader part(const char* key) const { return {get<Json>(key), where_ + key + "."}; }
  std::vector<Reader> list(const char* key) const {
    const auto list = get<Json>(key);
    if (!list.is_array()) fail(key, "is not a list");
    std::vector<Reader> parts;
    for (std::size_t i = 0; i < list.size(); ++i)
      parts.push_back({list[i], where_ + key + "[" + std::to_string(i) + "]."});
    return parts;
  }
  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    throw Error(where_ + key + " " + what + ": is this the profile.json of a run?");
  }

 private:
  Json json_;
  std::string where_;
};

Json to_json(const Shape& shape) {
  Json units = Json::array();
  for (const Unit& unit : shape.units) {
    Json matrices = Json::array();
    for (const Matrix& matrix : unit.matrices) matrices.push_back({matrix.begin, matrix.rows, matrix.columns});
    units.push_back({{"name", unit.name},
                     {"numel", unit.numel},
                     {"tied_to", unit.tied_to},
                     {"kept", unit.kept},
                     {"matrices", matrices},
                     {"frozen", unit.frozen},
                     {"idle", unit.idle},
                     {"exchanged", unit.exchanged},
                     {"among", unit.among},
                     {"stays", unit.stays},
                     {"float8", unit.float8},
                     {"float8_scales", unit.float8_scales},
                     {"packed", unit.packed},
                     {"packed_bytes", unit.packed_bytes}});
  }
  return {{"stage", shape.stage},
          {"ranks", shape.ranks},
          {"micro_steps", shape.micro_steps},
          {"short_ranks", shape.short_ranks},
          {"sequence", shape.sequence},
          {"chunks", shape.chunks_of_rank()},
          {"experts", shape.experts},
          {"activation_checkpointing", shape.activation_checkpointing},
          {"keeps_attention", shape.keeps_attention},
          {"offload_optimizer", shape.offload_optimizer},
          {"offload_parameters", shape.offload_parameters},
          {"secondary", shape.secondary},
          {"quantized_weights", shape.quantized_weights},
          {"float8_gathers", shape.float8_gathers},
          {"quantized_gradients", shape.quantized_gradients},
          {"units", units}};
}

std::vector<Matrix> read_matrices(const Reader& unit) {
  constexpr std::int64_t kLongest = 1 << 24;
  std::vector<Matrix> matrices;
  for (const auto& [begin, rows, columns] : unit.get<std::vector<std::array<std::int64_t, 3>>>("matrices")) {
    matrices.push_back({begin, rows, columns});
    if (begin < 0 || rows < 1 || rows > kLongest || columns < 1 || columns > kLongest)
      unit.fail("matrices", "has a matrix of " + std::to_string(rows) + " x " + std::to_string(columns));
  }
  return matrices;
}

Shape read_shape(const Reader& json) {
  constexpr std::int64_t kMost = 1 << 24, kParameters = std::int64_t{1} << 50;
  Shape shape;
  shape.stage = json.within<int>("stage", kStages.front(), kStages.back());
  shape.ranks = json.within<int>("ranks", 1, kMost);
  shape.micro_steps = json.within<int>("micro_steps", 1, kMost);
  if (json.has("short_ranks")) shape.short_ranks = json.within<int>("short_ranks", 0, shape.ranks - 1);
  if (json.has("sequence")) {
    shape.sequence = json.within<int>("sequence", 1, shape.ranks);
    shape.chunks = shape.sequence * json.within<int>("chunks", 1, kMost / shape.sequence);
  }
  if (json.has("experts")) shape.experts = json.within<int>("experts", 1, shape.ranks);
  shape.activation_checkpointing = json.get<bool>("activation_checkpointing");
  if (json.has("keeps_attention")) shape.keeps_attention = json.get<bool>("keeps_attention");
  shape.offload_optimizer = json.get<bool>("offload_optimizer");
  shape.offload_parameters = json.get<bool>("offload_parameters");
  shape.secondary = json.within<int>("secondary", 0, kMost);
  shape.quantized_weights = json.get<bool>("quantized_weights");
  if (json.has("float8_gathers")) shape.float8_gathers = json.get<bool>("float8_gathers");
  shape.quantized_gradients = json.get<bool>("quantized_gradients");
  const auto units = json.list("units");
  if (units.empty()) json.fail("units", "is empty");
  for (const Reader& unit : units) {
    shape.units.push_back({unit.get<std::string>("name"), unit.within<std::int64_t>("numel", 0, kParameters),
                           unit.within<int>("tied_to", -1, static_cast<std::int64_t>(units.size()) - 1)});
    shape.units.back().kept = unit.within<std::int64_t>("kept", -1, kParameters);
    shape.units.back().matrices = read_matrices(unit);
    if (unit.has("frozen"))
      shape.units.back().frozen = unit.within<std::int64_t>("frozen", 0, shape.units.back().numel);
    if (unit.has("idle")) shape.units.back().idle = unit.within<std::int64_t>("idle", 0, shape.units.back().numel);
    if (unit.has("exchanged")) shape.units.back().exchanged = unit.within<std::int64_t>("exchanged", 0, kParameters);
    if (unit.has("float8")) {
      shape.units.back().float8 = unit.within<std::int64_t>("float8", 0, shape.units.back().numel);
      shape.units.back().float8_scales = unit.within<int>("float8_scales", 0, kMost);
    }
    if (unit.has("packed")) {
      shape.units.back().packed = unit.within<std::int64_t>("packed", 0, shape.units.back().frozen);
      shape.units.back().packed_bytes = unit.within<std::int64_t>("packed_bytes", 0, kParameters);
    }
    if (unit.has("among")) shape.units.back().among = unit.within<int>("among", 1, shape.experts);
    if (unit.has("stays")) shape.units.back().stays = unit.get<bool>("stays");
  }
  if (frozen(shape) == numel(shape)) json.fail("units", "are all frozen");
  return shape;
}

}  // namespace

const Timing* Profile::find(Kind kind, int unit) const {
  const auto found = std::find_if(timings.begin(), timings.end(),
                                  [&](const Timing& timing) { return timing.kind == kind && timing.unit == unit; });
  return found == timings.end() ? nullptr : &*found;
}

double Profile::left_by(Kind kind, int unit) const {
  const Timing* timing = find(kind, unit);
  if (!timing && kind == Kind::forward_no_grad) timing = find(Kind::forward, unit);
  return timing ? std::max(0.0, timing->growth) : 0;
}

void Timings::add(const Op& op, double seconds, std::int64_t bytes) {
  Sum& sum = sums_[{op.kind, op.unit}];
  sum.seconds += seconds;
  if (allocated_ >= 0) sum.growth += static_cast<double>(bytes - allocated_);
  allocated_ = bytes;
  ++sum.now;
  ++sum.count;
  operations_ += seconds;
}

void Timings::end_step(double seconds) {
  for (auto& [key, sum] : sums_) {
    if (sum.now > 0) sum.shortest = std::min(sum.shortest, sum.seconds / static_cast<double>(sum.now));
    sum.seconds = 0;
    sum.now = 0;
  }
  rest_ = std::min(rest_, std::max(0.0, seconds - operations_));
  operations_ = 0;
  ++steps_;
}

Profile Timings::into(Profile profile) const {
  profile.rest = rest_;
  for (const auto& [key, sum] : sums_)
    profile.timings.push_back({key.first, key.second, sum.shortest, sum.growth / static_cast<double>(sum.count)});
  return profile;
}

Profile profile_of(const std::vector<Profile>& ranks) {
  Profile mean = ranks.front();
  const auto count = static_cast<double>(ranks.size());
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    mean.rest += ranks[rank].rest;
    mean.peak = std::max(mean.peak, ranks[rank].peak);
    mean.state = std::max(mean.state, ranks[rank].state);
    for (Timing& timing : mean.timings) {
      const Timing* const timed = ranks[rank].find(timing.kind, timing.unit);
      if (!timed) throw Error("the profiles of ranks 0 and " + std::to_string(rank) + " are of two plans");
      timing.seconds += timed->seconds;
      timing.growth = std::max(timing.growth, timed->growth);
    }
  }
  mean.rest /= count;
  for (Timing& timing : mean.timings) timing.seconds /= count;
  return mean;
}

std::string to_json(const Profile& profile) {
  Json operations = Json::array();
  for (const Timing& timing : profile.timings) {
    Json one = {{"operation", name(timing.kind)}};
    if (timing.unit >= 0) one["unit"] = profile.shape.units[static_cast<std::size_t>(timing.unit)].name;
    one["seconds"] = timing.seconds;
    one["growth_bytes"] = timing.growth;
    operations.push_back(std::move(one));
  }
  const Json json = {{"zs_profile", kVersion},
                     {"model", profile.model},
                     {"device", profile.device},
                     {"bytes_per_parameter", profile.bytes_per_parameter},
                     {profile.noun, profile.count},
                     {"ranks_of_node", profile.node},
                     {"overlaps", profile.overlaps},
                     {"rest_seconds", profile.rest},
                     {"peak_bytes", profile.peak},
                     {"state_bytes", profile.state},
                     {"slots_of_node", profile.slots},
                     {"config", profile.config.empty() ? Json::object() : Json::parse(profile.config)},
                     {"shape", to_json(profile.shape)},
                     {"operations", operations}};
  return json.dump(1) + "\n";
}

Profile profile_from_json(const std::string& text, const std::string& file) {
  const Json json = json_of<Json>(text, file);
  const Reader reader(json, file + ": ");
  if (const int version = reader.within<int>("zs_profile", 1, kVersion); version < kVersion)
    throw Error(file, 0, "is the profile of an earlier zs: measure again, with zs-train --deepcompile");
  Profile profile;
  profile.model = reader.get<std::string>("model");
  profile.device = reader.get<std::string>("device");
  profile.bytes_per_parameter = reader.within<int>("bytes_per_parameter", 1, 8);
  if (json.contains("images")) profile.noun = "images";
  profile.count = reader.within<std::int64_t>(profile.noun.c_str(), 1, std::int64_t{1} << 50);
  profile.node = reader.within<int>("ranks_of_node", 1, 1 << 24);
  profile.overlaps = reader.get<bool>("overlaps");
  profile.rest = reader.at_least_zero("rest_seconds");
  profile.peak = reader.at_least_zero("peak_bytes");
  profile.state = reader.at_least_zero("state_bytes");
  profile.slots = reader.within<int>("slots_of_node", 0, 1 << 24);
  profile.config = reader.get<Json>("config").dump();
  profile.shape = read_shape(reader.part("shape"));
  for (const Reader& one : reader.list("operations")) {
    Timing timing;
    const auto operation = one.get<std::string>("operation");
    int kind = 0;
    while (kind <= static_cast<int>(Kind::store_shard) && name(static_cast<Kind>(kind)) != operation) ++kind;
    if (kind > static_cast<int>(Kind::store_shard)) one.fail("operation", "is '" + operation + "', which no plan has");
    timing.kind = static_cast<Kind>(kind);
    if (timing.kind != Kind::norm) {
      const auto unit = one.get<std::string>("unit");
      const auto& units = profile.shape.units;
      const auto found = std::find_if(units.begin(), units.end(), [&](const Unit& each) { return each.name == unit; });
      if (found == units.end()) one.fail("unit", "is '" + unit + "', which the shape has not");
      timing.unit = static_cast<int>(found - units.begin());
    }
    timing.seconds = one.at_least_zero("seconds");
    timing.growth = one.get<double>("growth_bytes");
    profile.timings.push_back(timing);
  }
  return profile;
}

Profile read_profile(const std::string& path) {
  const std::string file = is_folder(path) ? path + "/profile.json" : path;
  return profile_from_json(Input(file).read_all(), file);
}

}  // namespace zs::plan
