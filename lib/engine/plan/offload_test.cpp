// SPDX-License-Identifier: Apache-2.0
// What passes move out of device memory for a part of a step, and gathers that begin together.
#include "plan/offload.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.hpp"
#include "plan/memory_curve.hpp"
#include "plan/shape_test.hpp"

namespace zs::plan {
namespace {

using Names = std::vector<std::string>;

const Names kTogether = {"offload_parameters", "selective_gather",    "prefetch",
                         "overlap_reduce",     "offload_adam_states", "offload_activation"};

std::size_t place(const Plan& plan, const Op& op) {
  return static_cast<std::size_t>(std::find(plan.ops.begin(), plan.ops.end(), op) - plan.ops.begin());
}

/// Of a step of `layout`: a gather takes `start` seconds and `each` for a byte that is sent; each unit keeps 800 bytes
/// for backward, of which checkpointing keeps 200.
std::shared_ptr<const Profile> measured(const Shape& layout, double start = 0, double each = 1e-9) {
  auto profile = std::make_shared<Profile>();
  profile->shape = layout;
  for (int unit = 0; unit < static_cast<int>(layout.units.size()); ++unit) {
    const double sent = sent_bytes({Kind::gather, unit}, layout, 4);
    profile->timings.push_back({Kind::gather, unit, start + each * sent, 0});
    profile->timings.push_back({Kind::gather_wait, unit, 0, 0});
    const bool light = layout.activation_checkpointing && unit + 1 < static_cast<int>(layout.units.size());
    profile->timings.push_back({light ? Kind::forward_no_grad : Kind::forward, unit, 1e-3, light ? 200.0 : 800.0});
    if (light) profile->timings.push_back({Kind::recompute, unit, 1e-3, 600});
    profile->timings.push_back({Kind::backward, unit, 2e-3, -800});
  }
  profile->peak = 50'000;
  return profile;
}

TEST_CASE("offload passes: every stage gives a plan that passes its check, alone, together and after others") {
  for (const int stage : {0, 1, 2, 3}) {
    for (const int ranks : {1, 2}) {
      for (const int micro_steps : {1, 4}) {
        for (const bool checkpointing : {false, true}) {
          CAPTURE(stage);
          CAPTURE(micro_steps);
          const Plan plan = baseline(shape(stage, ranks, micro_steps, checkpointing));
          const auto compiled = [&](const Names& names) { return compile(plan, names, {}); };
          for (const char* const name : {"offload_adam_states", "offload_adam_states_sync"}) {
            const Plan moved = compiled({name});
            CHECK(count(moved, Kind::store) == 4);
            CHECK(count(moved, Kind::load) == 4);
            CHECK(place(moved, {Kind::store, 3}) < place(moved, {Kind::forward, 3, 0}));
          }
          const Plan inputs = compiled({"offload_activation"});
          CHECK(count(inputs, Kind::store_input) == (checkpointing ? 2 * micro_steps : 0));
          CHECK(count(inputs, Kind::load_input) == count(inputs, Kind::store_input));
          // A unit's shard is loaded for each gather but the first, and for the update.
          const Plan shards = compiled({"offload_parameters"});
          CHECK(count(shards, Kind::store_shard) == (stage == 3 ? 4 : 0));
          CHECK(count(shards, Kind::load_shard) == (stage == 3 ? count(shards, Kind::gather) : 0));
          const Plan together = compiled(kTogether);
          CHECK(count(together, Kind::load) == 4);
          CHECK(together.effects.size() == kTogether.size());
          CHECK(sent_bytes(compiled({"offload_parameters"}), 4) == sent_bytes(plan, 4));
        }
      }
    }
  }
  // What is offloaded all the time is not moved once more.
  Shape away = shape(3);
  away.offload_optimizer = away.offload_parameters = true;
  const Plan plan = baseline(away);
  CHECK(compile(plan, {"offload_adam_states"}, {}).ops == plan.ops);
  CHECK(compile(plan, {"offload_parameters"}, {}).ops == plan.ops);
}

TEST_CASE(
    "offload passes: the async one loads a unit's state while the one before is updated, the sync one for its own") {
  const Plan plan = baseline(shape(2));
  const Plan early = compile(plan, {"offload_adam_states"}, {}), late = compile(plan, {"offload_adam_states_sync"}, {});
  CHECK(place(early, {Kind::load, 2}) == place(early, {Kind::step, 1}) - 1);
  CHECK(place(early, {Kind::load, 0}) == place(early, {Kind::norm}) - 1);
  for (const int unit : {0, 1, 2, 3}) CHECK(place(late, {Kind::load, unit}) == place(late, {Kind::step, unit}) - 1);
  CHECK_THROWS_WITH_AS(compile(plan, {"offload_adam_states", "offload_adam_states_sync"}, {}),
                       "there are optimizer states moved out already, and pass 'offload_adam_states_sync' does that "
                       "too: leave one out",
                       Error);
}

TEST_CASE("offload passes: with a profile as little moves as fits the budget, and comes back as soon as it does") {
  const Shape layout = shape(2, 2, 1, true);
  const auto profile = measured(layout);
  const Plan plan = baseline(layout);
  const MemoryCurve curve(*profile);
  const double peak = curve.peak(plan);
  CHECK(peak == doctest::Approx(50'000));
  const auto moved = [&](const char* name, double memory) {
    return compile(plan, {name}, {1'000'000'000, profile, memory});
  };
  CHECK(moved("offload_adam_states", peak).ops == plan.ops);
  CHECK(moved("offload_adam_states", peak).effects == Names{"offload_adam_states: changes nothing"});
  // The head has 64 bytes of state on each of two ranks, a block 1600. What is updated last goes first.
  const Plan one = moved("offload_adam_states", peak - 64);
  CHECK(count(one, Kind::store) == 1);
  CHECK(one.ops.front() == Op{Kind::store, 3});
  const Plan two = moved("offload_adam_states", peak - 65);
  CHECK(count(two, Kind::store) == 2);
  CHECK(curve.peak(two) <= peak - 65);
  // Behind the peak, the last unit's backward, there is room again: long before the update.
  CHECK(place(two, {Kind::load, 2}) == place(two, {Kind::backward, 3, 0}) + 1);
  const Plan whole = moved("offload_adam_states", 1);
  CHECK(count(whole, Kind::store) == 4);
  // Inputs of the two blocks are 200 bytes each; the sync variant asks nothing.
  CHECK(count(moved("offload_activation", peak - 1), Kind::store_input) == 1);
  CHECK(count(moved("offload_adam_states_sync", peak), Kind::store) == 4);
}

TEST_CASE("offload passes: the check finds what is used while it is away, and what does not come back") {
  const Plan plan = compile(baseline(shape(3, 2, 2, true)), kTogether, {100});
  for (const Kind kind :
       {Kind::store, Kind::load, Kind::store_shard, Kind::load_shard, Kind::store_input, Kind::load_input}) {
    CAPTURE(name(kind));
    const auto first = [&](std::vector<Op>& ops) {
      return std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return op.kind == kind; });
    };
    Plan without = plan, twice = plan, late = plan;
    without.ops.erase(first(without.ops));
    CHECK_THROWS_AS(check(without), Error);
    const auto one = first(twice.ops);
    twice.ops.insert(one, Op(*one));
    CHECK_THROWS_AS(check(twice), Error);
    const auto moved = first(late.ops);
    std::rotate(moved, moved + 1, late.ops.end());
    CHECK_THROWS_AS(check(late), Error);
  }
}

TEST_CASE("prefetch: small gathers begin together where that is predicted to be cheaper, and within the budget") {
  for (const int stage : {1, 2, 3}) {
    CAPTURE(stage);
    const Shape layout = shape(stage);
    const Plan plan = baseline(layout);
    const auto prefetched = [&](std::int64_t budget, const std::shared_ptr<const Profile>& profile) {
      return compile(plan, {"prefetch"}, {budget, profile});
    };
    const Plan alone = prefetched(1'000'000, nullptr);
    CHECK(collectives(alone) == collectives(plan));
    Shape even = layout;
    for (Unit& unit : even.units) unit.numel = 400;
    CHECK(collectives(compile(baseline(even), {"prefetch"}, {1'000'000, measured(even)})) == collectives(plan));
    const Plan together = prefetched(1'000'000, measured(layout, 1e-3, 1e-12));
    CHECK(collectives(together) < collectives(plan));
    CHECK(count(together, Kind::gather) == count(plan, Kind::gather));
    CHECK(sent_bytes(together, 4) == sent_bytes(plan, 4));
    CHECK(hash(together) != hash(alone));
    CHECK(together.effects.front().starts_with("prefetch: collectives "));
    // Without room no more is gathered at one time than before.
    const Plan tight = prefetched(1, measured(layout, 1e-3, 1e-12));
    CHECK(peak_gathered(tight) <= peak_gathered(alone));
    // A gather that begins with one that does not follow is no plan.
    Plan broken = together;
    const auto first = std::find_if(broken.ops.begin(), broken.ops.end(), [](const Op& op) { return op.with_next; });
    broken.ops.insert(first + 1, {Kind::norm});
    CHECK_THROWS_AS(check(broken), Error);
  }
  // All of stage 1's gathers follow the updates.
  CHECK(collectives(compile(baseline(shape(1)), {"prefetch"}, {1'000'000, measured(shape(1), 1e-3, 1e-12)})) ==
        collectives(baseline(shape(1))) - 3);
  // Beside other passes they stay together.
  CHECK_NOTHROW(compile(baseline(shape(3, 2, 2, true)), kTogether, {1'000'000, measured(shape(3), 1e-3, 1e-12), 1}));
}

}  // namespace
}  // namespace zs::plan
