// SPDX-License-Identifier: Apache-2.0
#include "plan/cost.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "plan/candidate.hpp"
#include "plan/layers.hpp"
#include "plan/memory.hpp"
#include "plan/pass.hpp"

namespace zs::plan {
namespace {

/// A machine of which all is known: what each operation of a plan takes there.
double true_seconds(const Op& op, const Shape& shape) {
  const auto numel = op.unit < 0 ? 0.0 : static_cast<double>(shape.units[static_cast<std::size_t>(op.unit)].numel);
  const double owned = shape.stage == 0 ? numel : numel / shape.ranks;
  switch (op.kind) {
    case Kind::forward:
    case Kind::recompute:
    case Kind::forward_no_grad:
      return 1e-3 + numel * 1e-6;
    case Kind::backward:
      return 2e-3 + numel * 2e-6;
    case Kind::step:
      return 1e-4 + owned * 1e-7;
    case Kind::norm:
      return 1e-3;
    case Kind::accumulate:
      return shape.micro_steps == 1 ? 0 : (shape.stage <= 1 ? numel : owned) * 1e-8;
    case Kind::gather:
    case Kind::gather_secondary:
    case Kind::reduce:
    case Kind::gather_grad: {
      const double ranks = op.kind == Kind::gather_secondary ? shape.secondary : shape.ranks;
      return 5e-5 + operand_bytes(op, shape, 4) * (ranks - 1) / ranks * 1e-9;
    }
    default:
      return 0;
  }
}

Shape shape_of(int stage, int ranks, int micro_steps) {
  return {{stage, ranks, micro_steps}, {{"embedding", 100'000}, {"h.0", 40'000}, {"h.1", 40'000}, {"head", 1600, 0}}};
}

double true_seconds(const Plan& plan) {
  double sum = 0;
  for (const Op& op : plan.ops) sum += true_seconds(op, plan.shape);
  return sum;
}

Profile measured(const Shape& layout, bool overlaps = false) {
  Timings timings;
  const Plan plan = baseline(layout);
  for (int step = 0; step < 2; ++step) {
    std::int64_t allocated = 1000;
    double seconds_of_step = 0.25;
    for (const Op& op : plan.ops) {
      allocated += op.kind == Kind::forward ? 500 : op.kind == Kind::backward ? -500 : 0;
      // Other work on the machine delays what computes in one step, all else in the other.
      const double seconds = true_seconds(op, layout) * (computes(op.kind) == (step == 0) ? 1.5 : 1);
      timings.add(op, seconds, allocated);
      seconds_of_step += seconds;
    }
    timings.end_step(seconds_of_step);
  }
  Profile profile;
  profile.model = "small";
  profile.device = "cpu";
  profile.shape = layout;
  profile.count = 64;
  profile.node = layout.ranks;
  profile.overlaps = overlaps;
  profile.peak = 5e6;
  profile.state = kept_bytes(plan, 4);
  return timings.into(profile);
}

TEST_CASE("profile: survives its file, and what is no profile is refused at its place") {
  const Profile profile = measured(shape_of(3, 4, 2));
  CHECK(profile.rest == doctest::Approx(0.25));
  CHECK(profile.find(Kind::forward, 1)->seconds == doctest::Approx(0.041));
  CHECK(profile.find(Kind::forward, 1)->growth == doctest::Approx(500));
  const std::string text = to_json(profile);
  const Profile again = profile_from_json(text, "profile.json");
  CHECK(again.timings == profile.timings);
  CHECK(to_json(again) == text);
  const auto refusal = [](const std::string& json) -> std::string {
    try {
      profile_from_json(json, "p.json");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return refusal(changed);
  };
  CHECK(refusal("{}") == "p.json: zs_profile is missing: is this the profile.json of a run?");
  CHECK(refusal("[1").starts_with("p.json: is not JSON: "));
  CHECK(with("\"stage\": 3", "\"stage\": 4") ==
        "p.json: shape.stage is 4, not in 0..3: is this the profile.json of a run?");
  CHECK(with("\"operation\": \"backward\"", "\"operation\": \"backwards\"") ==
        "p.json: operations[16].operation is 'backwards', which no plan has: is this the profile.json of a run?");
  CHECK(with("\"tokens\": 64", "\"tokens\": \"64\"").starts_with("p.json: tokens is not what it should be: \"64\""));
  CHECK(refusal(text.substr(0, text.size() / 2)).starts_with("p.json: is not JSON: "));
}

TEST_CASE("profile: ranks join to the mean of their times and the most of their memory") {
  Profile a = measured(shape_of(3, 2, 1)), b = a;
  for (Timing& timing : b.timings) timing.seconds *= 3;
  b.peak = 9e6;
  const Profile mean = profile_of({a, b});
  CHECK(mean.find(Kind::backward, 2)->seconds == doctest::Approx(2 * a.find(Kind::backward, 2)->seconds));
  CHECK(mean.peak == 9e6);
  b.timings.pop_back();
  CHECK_THROWS_WITH_AS(profile_of({a, b}), "the profiles of ranks 0 and 1 are of two plans", Error);
}

TEST_CASE("cost: what was measured of one step predicts other stages, ranks and micro-steps") {
  const CostModel model(measured(shape_of(3, 4, 2)), {});
  for (const int stage : {0, 1, 2, 3}) {
    for (const int ranks : {2, 4, 16}) {
      for (const int micro_steps : {2, 8}) {
        CAPTURE(stage);
        CAPTURE(ranks);
        CAPTURE(micro_steps);
        const Plan plan = baseline(shape_of(stage, ranks, micro_steps));
        const Prediction predicted = model.predict(plan);
        CHECK(predicted.unknown.empty());
        CHECK(predicted.seconds == doctest::Approx(true_seconds(plan) + 0.25).epsilon(0.01));
        CHECK(predicted.sent == sent_bytes(plan, 4));
      }
    }
  }
  Shape twice = shape_of(3, 16, 2);
  twice.secondary = 4;
  CHECK(model.predict(baseline(twice)).seconds == doctest::Approx(true_seconds(baseline(twice)) + 0.25).epsilon(0.01));
  // Memory: what was measured, and in another stage other state and buffers. At stage 0 a leaf's gradient has a buffer
  // of each size of unit; at stage 3 so have gathered parameters, and what is reduced a quarter of one.
  const double three = model.predict(baseline(shape_of(3, 4, 2))).memory,
               zero = model.predict(baseline(shape_of(0, 4, 2))).memory;
  const double total = 181'600, of_each_size = 141'600;
  CHECK(three == doctest::Approx(5e6));
  CHECK(zero - three == doctest::Approx(16 * total * 0.75 - 4 * of_each_size - of_each_size));
}

TEST_CASE("cost: ranks that share processors share their time") {
  Profile profile = measured(shape_of(3, 2, 2));
  profile.slots = 2;
  const auto seconds = [&](int ranks, int node) {
    return CostModel(profile, {node, 0, 0}).predict(baseline(shape_of(0, ranks, 2))).seconds;
  };
  const auto alone = [](int ranks) { return true_seconds(baseline(shape_of(0, ranks, 2))) + 0.25; };
  CHECK(seconds(1, 1) == doctest::Approx(alone(1)).epsilon(0.01));
  CHECK(seconds(4, 2) == doctest::Approx(alone(4)).epsilon(0.01));
  CHECK(seconds(4, 4) == doctest::Approx(2 * alone(4)).epsilon(0.01));
  profile.slots = 1;  // both shared one when it was measured
  CHECK(seconds(1, 1) == doctest::Approx(alone(1) / 2).epsilon(0.01));
}

TEST_CASE("cost: on GPUs memory is the most at one time; on processors each buffer stays") {
  Profile profile = measured({{}, {{"a", 100}, {"b", 300}}}, /*overlaps=*/true);
  for (Timing& timing : profile.timings) timing.growth = timing.kind == Kind::forward ? 500 : 0;
  const Plan plan = baseline(profile.shape);
  // Moments 3200 and parameters 1600 always; in the backward of b both units' activations of 500, and its gradient.
  CHECK(peak_bytes(plan, profile) == 3200 + 1600 + 2 * 500 + 1200);
  // Gradients of both, and all activations, though they are not there together.
  CHECK(kept_bytes(plan, 4) + activation_bytes(profile, false) == 3200 + 1600 + 2 * 500 + 1600);
  profile.peak = peak_bytes(plan, profile) + 77;
  profile.state = kept_bytes(plan, 4);
  CHECK(CostModel(profile, {}).predict(plan).memory == profile.peak);
  Shape half = profile.shape;
  half.stage = 1, half.ranks = 2;
  CHECK(CostModel(profile, {}).predict(baseline(half)).memory == profile.peak - 3200 / 2);
}

TEST_CASE("layers: what was measured of some is a profile of all, as if all had been measured") {
  Shape small = shape_of(3, 4, 2), large = small;
  small.units.erase(small.units.begin() + 2);
  for (int i = 2; i < 5; ++i) large.units.insert(large.units.begin() + 1 + i, {"h." + std::to_string(i), 40'000});
  Profile few = measured(small), many = measured(large);
  few.peak = few.state + activation_bytes(few, false) + 1000,
  many.peak = many.state + activation_bytes(many, false) + 1000;
  for (const auto& [from, to] : {std::pair{few, many}, std::pair{many, few}}) {
    const Profile made = with_layers(from, to.shape.units.size() == large.units.size() ? 5 : 1);
    require_same_units(to.shape, made);
    CHECK(made.shape.units.back().tied_to == 0);
    for (const int stage : {0, 3}) {
      Shape layout = to.shape;
      layout.stage = stage, layout.ranks = 8, layout.micro_steps = 4;
      const Prediction one = CostModel(made, {}).predict(baseline(layout)),
                       other = CostModel(to, {}).predict(baseline(layout));
      CHECK(one.unknown.empty());
      CHECK(one.seconds == doctest::Approx(other.seconds).epsilon(0.01));
      CHECK(one.memory == doctest::Approx(other.memory));
      CHECK(one.sent == other.sent);
    }
  }
  Profile none = few;
  for (Unit& unit : none.shape.units) unit.name = "part";
  CHECK_THROWS_WITH_AS(with_layers(none, 3), "the profile's model has no numbered layers: give none of another number",
                       Error);
}

TEST_CASE("layers: a folder's config.json says how many, and is of the model that was measured") {
  Profile profile = measured(shape_of(3, 4, 2));
  profile.config = R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_inner": null, "vocab_size": 100})";
  const TemporaryFolder folder;
  const auto said = [&](const std::string& config) -> std::string {
    std::ofstream(folder.file("config.json")) << config;
    try {
      return std::to_string(layers_of(folder.path(), profile));
    } catch (const Error& error) {
      const std::string what = error.what(), path = folder.path() + "/";
      return what.starts_with(path) ? what.substr(path.size()) : what;
    }
  };
  CHECK(said(R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 36, "n_inner": 256})") == "36");
  CHECK(said(R"({"num_hidden_layers": 7, "transformers_version": "5.2"})") == "7");
  CHECK(said(R"({"n_embd": 65, "n_layer": 36})")
            .starts_with("config.json: n_embd is 65, and of the profile's model 64: "));
  CHECK(said(R"({"n_layer": -1})") == "config.json: says no number of layers: num_hidden_layers or n_layer");
  CHECK(said("[]") == "config.json: is not a JSON object");
}

TEST_CASE("cost: what was not measured is named, not guessed") {
  const Prediction sums = CostModel(measured(shape_of(3, 4, 1)), {}).predict(baseline(shape_of(3, 4, 2)));
  CHECK(sums.unknown.count("sums over micro-steps") == 1);
  const Prediction alone = CostModel(measured(shape_of(3, 1, 2)), {}).predict(baseline(shape_of(3, 4, 2)));
  CHECK(alone.unknown.count("collectives within a node") == 1);
  Shape offloads = shape_of(3, 4, 2);
  offloads.offload_optimizer = true;
  CHECK(CostModel(measured(shape_of(3, 4, 2)), {}).predict(baseline(offloads)).unknown.count("offload") == 1);
  Shape integers = shape_of(3, 4, 2);
  integers.quantized_weights = true;
  CHECK(CostModel(measured(shape_of(3, 4, 2)), {}).predict(baseline(integers)).unknown.count("rounding to integers") ==
        1);
}

TEST_CASE("cost: where it overlaps, what travels hides behind what computes, and no more than that") {
  const CostModel model(measured(shape_of(3, 4, 2), true), {});
  const Plan plan = baseline(shape_of(3, 4, 2));
  const double flat = model.predict(plan).seconds,
               early = model.predict(compile(plan, {"prefetch", "overlap_reduce"}, {})).seconds;
  double travels = 0;
  for (const Op& op : plan.ops) travels += operand_bytes(op, plan.shape, 4) > 0 ? true_seconds(op, plan.shape) : 0;
  CHECK(flat == doctest::Approx(true_seconds(plan) + 0.25));
  CHECK(early < flat);
  CHECK(early >= flat - travels);
}

TEST_CASE("cost: between nodes it is the network's bandwidth that counts") {
  const Profile profile = measured(shape_of(3, 4, 2));
  const Plan plan = baseline(shape_of(3, 8, 2));
  const double bandwidth = 1e8, far = sent_between_nodes(plan, 4, 4);
  const Prediction predicted = CostModel(profile, {4, bandwidth, 0}).predict(plan),
                   near = CostModel(profile, {}).predict(plan);
  CHECK(predicted.between_nodes == doctest::Approx(far));
  CHECK(predicted.seconds - near.seconds == doctest::Approx(far / bandwidth - far * 1e-9).epsilon(0.02));
}

TEST_CASE("cost: a node of GPUs gets what is gathered once, and sends one sum of its gradients") {
  const Plan plan = baseline(shape_of(3, 8, 1));
  const double bandwidth = 1e3;  // all else is nothing beside it
  double network = 0;
  for (const Op& op : plan.ops) {
    if (!gathers(op.kind) && op.kind != Kind::reduce) continue;
    network += operand_bytes(op, plan.shape, 4) / 2 / 4 / bandwidth;  // half of it, from each of four ranks
  }
  const Profile profile = measured(shape_of(3, 4, 1), /*overlaps=*/true);
  CHECK(CostModel(profile, {4, bandwidth, 0}).predict(plan).seconds == doctest::Approx(network).epsilon(0.02));
}

TEST_CASE("candidates: the fastest that fits is first, and why others do not is said") {
  Cluster cluster{2, 4, {4, 1e8, 1e-4}, 0, {2, 16}};
  const auto ranking = candidates({measured(shape_of(3, 4, 2))}, cluster);
  CHECK(ranking.size() == 10);  // stages 0 to 3, and 3 with a secondary partition, by two accumulations
  for (std::size_t i = 1; i < ranking.size(); ++i) CHECK(ranking[i - 1].rate >= ranking[i].rate);
  const auto find = [&](const std::vector<Candidate>& ranked, int stage, int secondary, int micro_steps) {
    return *std::find_if(ranked.begin(), ranked.end(), [&](const Candidate& one) {
      return one.shape.stage == stage && one.shape.secondary == secondary && one.shape.micro_steps == micro_steps;
    });
  };
  CHECK(find(ranking, 3, 4, 2).predicted.seconds < find(ranking, 3, 0, 2).predicted.seconds);
  // Sixteen micro-steps are extended from four, to the same.
  const double whole =
      CostModel(measured(shape_of(3, 4, 2)), cluster.network).predict(baseline(shape_of(3, 8, 16))).seconds;
  CHECK(find(ranking, 3, 0, 16).predicted.seconds == doctest::Approx(whole));
  cluster.memory = find(ranking, 2, 0, 2).predicted.memory;
  const auto some = candidates({measured(shape_of(3, 4, 2))}, cluster);
  CHECK(some.front().why_not.empty());
  CHECK(find(some, 0, 0, 2).why_not.starts_with("needs "));
  CHECK(find(some, 2, 0, 2).why_not.empty());
  Profile other = measured(shape_of(3, 4, 2));
  other.shape.units[1].numel = 7;
  CHECK_THROWS_WITH_AS(
      candidates({measured(shape_of(3, 4, 2)), other}, cluster),
      "the profile is of another model: its unit 1 is h.0 of 7 parameters, and this one's is h.0 of 40000 "
      "parameters",
      Error);
}

TEST_CASE("passes: selective_gather keeps first what takes most time for each parameter") {
  auto profile = std::make_shared<Profile>(measured(shape_of(3, 2, 2)));
  for (Timing& timing : profile->timings) {
    if (timing.kind == Kind::gather) timing.seconds = timing.unit == 2 ? 1 : 1e-9;
  }
  const Plan plan = baseline(shape_of(3, 2, 2));
  const auto gathers_of = [](const Plan& searched, int unit) {
    return std::count(searched.ops.begin(), searched.ops.end(), Op{Kind::gather, unit, -1});
  };
  // Room for one block beside what is gathered at the peak. By size the head would be first, and no room left for it.
  const Plan by_time = compile(plan, {"selective_gather"}, {180'000, profile});
  CHECK(gathers_of(by_time, 2) == 1);
  CHECK(gathers_of(by_time, 1) == 4);
}

}  // namespace
}  // namespace zs::plan
