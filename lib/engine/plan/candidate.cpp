// SPDX-License-Identifier: Apache-2.0
#include "plan/candidate.hpp"

#include <algorithm>
#include <bit>

#include "base/error.hpp"
#include "base/number.hpp"
#include "plan/offload.hpp"
#include "plan/pass.hpp"

namespace zs::plan {
namespace {

Prediction of_shape(const CostModel& model, const Shape& shape) {
  // Starts early what overlaps; otherwise the order does not matter.
  const std::vector<std::string> early = {"prefetch", "overlap_reduce"};
  const Plan plan = baseline(shape);
  return model.predict(model.profile().overlaps ? compile(plan, early, {}) : plan);
}

/// Steps of many micro-steps cost what each more of them costs: a plan of thousands of operations is not walked. Where
/// ranks send several sums, their number does not grow evenly.
Prediction predict(const CostModel& model, Shape shape) {
  constexpr int kWalked = 4, kWalkedUnevenly = 100;
  const int micro_steps = shape.micro_steps;
  const bool evenly = shape.divided().gradients || std::has_single_bit(static_cast<unsigned>(micro_steps));
  if (micro_steps <= (evenly ? kWalked : kWalkedUnevenly)) return of_shape(model, shape);
  shape.micro_steps = kWalked / 2;
  const Prediction few = of_shape(model, shape);
  shape.micro_steps = kWalked;
  Prediction many = of_shape(model, shape);
  const double more = static_cast<double>(micro_steps - kWalked) / static_cast<double>(kWalked / 2);
  const auto extend = [&](double& value, double before) { value += (value - before) * more; };
  extend(many.seconds, few.seconds);
  extend(many.sent, few.sent);
  extend(many.between_nodes, few.between_nodes);
  for (auto& [lane, seconds] : many.parts) {
    const auto before = few.parts.find(lane);
    extend(seconds, before == few.parts.end() ? 0 : before->second);
  }
  return many;
}

}  // namespace

std::string way(const Shape& shape) {
  std::string text = "stage " + std::to_string(shape.stage);
  if (shape.secondary > 0) text += ", hpZ " + std::to_string(shape.secondary);
  if (shape.quantized_weights) text += ", qwZ";
  if (shape.float8_gathers) text += ", gathers in FP8";
  if (shape.quantized_gradients) text += ", qgZ";
  if (const double share = offloaded_share(shape); share > 0)
    text += ", offload of " + (share < 1 ? to_rounded_text(share, 2) + " of " : "") + "optimizer state";
  if (shape.offload_parameters) text += ", offload of parameters";
  if (shape.activation_checkpointing)
    text += shape.keeps_attention ? ", selective activation checkpointing" : ", activation checkpointing";
  return text;
}

std::string to_text(const Shape& shape) { return way(shape) + ", accumulation " + std::to_string(shape.micro_steps); }

std::vector<Candidate> candidates(const std::vector<Profile>& profiles, const Cluster& cluster) {
  const int ranks = cluster.nodes * cluster.gpus_per_node;
  std::vector<Candidate> found;
  for (const Profile& profile : profiles) {
    require_same_units(profiles.front().shape, profile);
    const CostModel model(profile, cluster.network);
    for (const int stage : kStages) {
      const Shape& measured = profile.shape;
      const Division divided = divided_by(stage);
      if (offloaded_share(measured) > 0 && !divided.optimizer_state) continue;
      if (ranks % measured.sequence != 0 || ranks % measured.experts != 0) continue;
      const bool of_shards = measured.offload_parameters || measured.quantized_weights || measured.float8_gathers ||
                             measured.quantized_gradients;
      if (of_shards && !divided.parameters) continue;
      for (const int secondary : {0, cluster.gpus_per_node}) {
        if (secondary > 0 && (!divided.parameters || cluster.nodes == 1 || secondary == 1)) continue;
        for (const int micro_steps : cluster.accumulations) {
          Candidate one;
          one.nodes = cluster.nodes;
          one.shape = measured;
          one.shape.stage = stage;
          one.shape.ranks = ranks;
          one.shape.secondary = secondary;
          one.shape.micro_steps = micro_steps;
          one.shape.short_ranks = 0;
          one.predicted = predict(model, one.shape);
          one.noun = profile.noun;
          one.rate = static_cast<double>(profile.count) * micro_steps * ranks / one.predicted.seconds;
          const Prediction& prediction = one.predicted;
          if (!prediction.unknown.empty()) {
            one.why_not = "not measured:";
            for (const std::string& what : prediction.unknown)
              one.why_not += (one.why_not.back() == ':' ? " " : ", ") + what;
          } else if (cluster.memory > 0 && prediction.memory > cluster.memory) {
            one.why_not = "needs " + to_bytes_text(prediction.memory - cluster.memory) + " more";
          }
          found.push_back(std::move(one));
        }
      }
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
    if (a.why_not.empty() != b.why_not.empty()) return a.why_not.empty();
    return a.rate > b.rate;
  });
  return found;
}

}  // namespace zs::plan
