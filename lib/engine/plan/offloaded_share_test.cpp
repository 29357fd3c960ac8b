// SPDX-License-Identifier: Apache-2.0
// Which units' optimizer state is offloaded for a share, and the plans, bytes and predictions that follow.
#include "plan/offload.hpp"

#include <doctest/doctest.h>

#include <random>

#include "base/error.hpp"
#include "plan/candidate.hpp"
#include "plan/layers.hpp"
#include "plan/pass.hpp"
#include "plan/profile.hpp"
#include "plan/shape_test.hpp"

namespace zs::plan {
namespace {

/// GPT-2 of 1558M parameters: an embedding, 48 blocks, a head that is tied to the embedding.
Shape gpt2_xl(int stage = 3) {
  Shape layout{{stage}, {{"embedding", 82'050'000}}};
  for (int i = 0; i < 48; ++i) layout.units.push_back({"h." + std::to_string(i), 30'740'000});
  layout.units.push_back({"head", 3'200, 0});
  layout.offload_optimizer = true;
  return layout;
}

Shape with(Shape shape, double ratio) {
  offload_share(shape, ratio);
  return shape;
}

/// "a-a-" where the first and third are away.
std::string places(const Shape& shape) {
  std::string text;
  for (const Unit& unit : shape.units) text += shape.offloads(unit) ? 'a' : '-';
  return text;
}

TEST_CASE("share: after each unit the share so far is the ratio, but for half of the largest unit") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Shape layout;
    layout.offload_optimizer = true;
    const int units = 1 + static_cast<int>(random() % 30);
    for (int i = 0; i < units; ++i) {
      layout.units.push_back({std::to_string(i), static_cast<std::int64_t>(1 + random() % 1000)});
      layout.units.back().frozen = random() % 4 == 0 ? layout.units.back().numel / 2 : 0;
      layout.units.back().among = random() % 4 == 0 ? 2 : 1;
    }
    const double ratio = static_cast<double>(random() % 11) / 10;
    CAPTURE(ratio);
    layout = with(layout, ratio);
    double total = 0, away = 0, largest = 0;
    for (const Unit& unit : layout.units) {
      const double elements = static_cast<double>(unit.trained()) * unit.among;
      total += elements, largest = std::max(largest, elements);
      if (layout.offloads(unit)) away += elements;
      CHECK(std::abs(away - ratio * total) <= largest / 2 + 1e-6);
    }
    CHECK(offloaded_share(layout) == doctest::Approx(away / total));
  }
  CHECK(places(with(gpt2_xl(), 0)) == std::string(50, '-'));
  CHECK(places(with(gpt2_xl(), 1)) == std::string(50, 'a'));
  CHECK(offloaded_share(with(gpt2_xl(), 0.7)) == doctest::Approx(0.7).epsilon(0.02));
  Shape none = with(gpt2_xl(), 0.7);
  none.offload_optimizer = false;
  CHECK(offloaded_share(none) == 0);
}

TEST_CASE("share: those that stay lie evenly among the others, whatever stage and ranks") {
  Shape ten{
      {},
      {{"a", 10}, {"b", 10}, {"c", 10}, {"d", 10}, {"e", 10}, {"f", 10}, {"g", 10}, {"h", 10}, {"i", 10}, {"j", 10}}};
  ten.offload_optimizer = true;
  CHECK(places(with(ten, 0.6)) == "a-a-aa-a-a");  // as the picture in the header has it
  CHECK(places(with(ten, 0.3)) == "-a--a---a-");
  // Never are more than two of a kind next to each other where the ratio is between 1/3 and 2/3.
  for (const double ratio : {0.4, 0.5, 0.6}) {
    const std::string text = places(with(gpt2_xl(), ratio)).substr(4, 44);
    CHECK(text.find("aaa") == std::string::npos);
    CHECK(text.find("---") == std::string::npos);
    for (const int stage : {1, 2}) CHECK(places(with(gpt2_xl(stage), ratio)) == places(with(gpt2_xl(), ratio)));
  }
}

TEST_CASE("share: a plan loads and stores what is away alone, one load ahead; a pass moves what stays") {
  for (const int stage : {1, 2, 3}) {
    for (const double ratio : {0.0, 0.3, 0.5, 0.7, 1.0}) {
      CAPTURE(stage);
      CAPTURE(ratio);
      Shape layout = shape(stage);
      layout.offload_optimizer = true, layout.offload_parameters = stage == 3;
      offload_share(layout, ratio);
      const Plan plan = baseline(layout);
      CHECK_NOTHROW(check(plan));
      const std::string where = places(layout);
      const auto away = std::count(where.begin(), where.end(), 'a');
      CHECK(count(plan, Kind::load) == away);
      CHECK(count(plan, Kind::store) == away);
      CHECK(count(plan, Kind::store_shard) == (stage == 3 ? 4 : 0));
      int loaded = 0;  // and not yet updated
      for (const Op& op : plan.ops) {
        if (op.kind == Kind::load) CHECK(++loaded <= 2);
        if (op.kind == Kind::step && layout.offloads(layout.units[static_cast<std::size_t>(op.unit)])) --loaded;
      }
      for (const char* const pass : {"offload_adam_states", "offload_adam_states_sync"}) {
        const Plan moved = compile(plan, {pass}, {});
        CHECK(count(moved, Kind::store) == 4);
        CHECK(count(moved, Kind::load) == 4);
      }
      // A plan for other places is not taken for this one.
      for (Unit& unit : layout.units) {
        Plan other = plan;
        Unit& changed = other.shape.units[static_cast<std::size_t>(&unit - layout.units.data())];
        changed.stays = !changed.stays;
        CHECK_THROWS_AS(check(other), Error);
      }
    }
  }
}

TEST_CASE("share: bytes of state in device memory are those that stay") {
  const double whole = state_bytes(with(gpt2_xl(), 0), 2), away = state_bytes(with(gpt2_xl(), 1), 2);
  CHECK(whole - away == doctest::Approx(12 * trained(gpt2_xl())));
  for (const double ratio : {0.3, 0.7}) {
    const Shape layout = with(gpt2_xl(), ratio);
    CHECK(whole - state_bytes(layout, 2) == doctest::Approx(12 * trained(layout) * offloaded_share(layout)));
  }
}

/// A profile in which a load and a store take 1 ns a byte, and a forward 1 ms.
Profile measured(const Shape& layout) {
  Profile profile;
  profile.shape = layout;
  profile.bytes_per_parameter = 2;
  profile.count = 1000;
  const Plan plan = baseline(layout);
  for (const Op& op : plan.ops) {
    const bool moves = op.kind == Kind::load || op.kind == Kind::store;
    const double state = moves ? 12.0 * static_cast<double>(layout.units[static_cast<std::size_t>(op.unit)].numel) : 0;
    if (!profile.find(op.kind, op.unit))
      profile.timings.push_back({op.kind, op.unit, moves ? state * 1e-9 : computes(op.kind) ? 1e-3 : 0, 0});
  }
  return profile;
}

TEST_CASE(
    "share: a profile keeps it; a model of more layers has it too; what all of it costs is predicted from a part") {
  const Shape layout = with(gpt2_xl(), 0.7);
  const Profile profile = measured(layout), again = profile_from_json(to_json(profile), "profile.json");
  CHECK(places(again.shape) == places(layout));
  const Shape more = with_layers(profile, 96).shape;
  CHECK(offloaded_share(more) == doctest::Approx(0.7).epsilon(0.02));
  CHECK(places(more).find("---") == std::string::npos);
  for (const double ratio : {0.2, 0.7, 1.0}) {
    const Shape other = with(gpt2_xl(), ratio);
    const Prediction predicted = CostModel(profile, {}).predict(baseline(other));
    CHECK(predicted.unknown.empty());
    CHECK(predicted.parts.at("offload") == doctest::Approx(2 * 12e-9 * trained(other) * offloaded_share(other)));
  }
  CHECK(way(layout) == "stage 3, offload of 0.70 of optimizer state");
  CHECK(way(with(layout, 1)) == "stage 3, offload of optimizer state");
  CHECK(way(with(layout, 0)) == "stage 3");
}

}  // namespace
}  // namespace zs::plan
