// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/error.hpp"
#include "plan/memory.hpp"
#include "plan/pass.hpp"
#include "plan/shape_test.hpp"

namespace zs::plan {
namespace {

std::string ops(const Plan& plan) {
  const std::string text = to_text(plan);
  std::string lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (text[at] != '#') lines += text.substr(text.find('\t', at) + 1, end - text.find('\t', at) - 1) + "\n";
    at = end + 1;
  }
  return lines;
}

TEST_CASE("plan: every stage, accumulation and checkpointing gives a plan that passes its check") {
  for (const int stage : {0, 1, 2, 3}) {
    for (const int ranks : {1, 2, 8}) {
      for (const int micro_steps : {1, 4}) {
        for (const bool checkpointing : {false, true}) {
          const Plan plan = baseline(shape(stage, ranks, micro_steps, checkpointing));
          CHECK_NOTHROW(check(plan));
          CHECK(count(plan, Kind::recompute) == (checkpointing ? 3 * micro_steps : 0));
          for (const auto& names : std::vector<std::vector<std::string>>{
                   usual_passes(), {"prefetch"}, {"selective_gather"}, {"overlap_reduce"}}) {
            CHECK_NOTHROW(compile(plan, names, {}));
          }
        }
      }
    }
  }
}

TEST_CASE(
    "plan: a shard of 16 bits gives way once, to the last gradient of its unit, where masters can make it again") {
  const auto gives_way = [](const Plan& plan, int bytes) {
    std::vector<int> units;
    for (std::size_t at = 0; at < plan.ops.size(); ++at) {
      if (!shard_gives_way(plan, at, bytes)) continue;
      CHECK(plan.ops[at].micro + 1 == plan.shape.micro_steps);
      units.push_back(plan.ops[at].unit);
    }
    return units;
  };
  for (const int micro_steps : {1, 4}) {
    for (const int stage : {0, 1, 2}) CHECK(gives_way(baseline(shape(stage, 2, micro_steps)), 2).empty());
    const Plan plan = baseline(shape(3, 2, micro_steps));
    CHECK(gives_way(plan, 2) == std::vector{3, 2, 1, 0});
    CHECK(gives_way(compile(plan, usual_passes(), {}), 2) == std::vector{3, 2, 1, 0});
    CHECK(gives_way(plan, 4).empty());
  }
  Shape moved = shape(3), frozen = shape(3);
  moved.offload_parameters = true, frozen.units[1].frozen = 100;
  CHECK(gives_way(baseline(moved), 2).empty());
  CHECK(gives_way(baseline(frozen), 2) == std::vector{3, 2, 0});
}

TEST_CASE("plan: stage 3 gathers each unit for forward and for backward, and keeps what the head is tied to") {
  CHECK(ops(baseline(shape(3, 2, 1))) ==
        "gather embedding\ngather_wait embedding\nforward embedding @0\n"
        "gather h.0\ngather_wait h.0\nforward h.0 @0\nrelease h.0\n"
        "gather h.1\ngather_wait h.1\nforward h.1 @0\nrelease h.1\n"
        "gather head\ngather_wait head\nforward head @0\nrelease embedding\nrelease head\n"
        "gather embedding\ngather_wait embedding\ngather head\ngather_wait head\nbackward head @0\nreduce head "
        "@0\nreduce_wait head @0\naccumulate head @0\nrelease head\n"
        "gather h.1\ngather_wait h.1\nbackward h.1 @0\nreduce h.1 @0\nreduce_wait h.1 @0\naccumulate h.1 @0\nrelease "
        "h.1\n"
        "gather h.0\ngather_wait h.0\nbackward h.0 @0\nreduce h.0 @0\nreduce_wait h.0 @0\naccumulate h.0 @0\nrelease "
        "h.0\n"
        "backward embedding @0\nreduce embedding @0\nreduce_wait embedding @0\naccumulate embedding @0\nrelease "
        "embedding\n"
        "norm\nstep embedding\nstep h.0\nstep h.1\nstep head\n");
}

TEST_CASE("plan: what is sent is the bandwidth-optimal formula of each stage, in the types that travel") {
  const double psi = 1816;
  for (const int ranks : {2, 4, 8}) {
    for (const int micro_steps : {1, 4}) {
      const double f = static_cast<double>(ranks - 1) / ranks;
      for (const int bytes : {2, 4}) {
        const auto sent = [&](int stage) { return sent_bytes(baseline(shape(stage, ranks, micro_steps)), bytes); };
        const double p = bytes * psi * f, s = 4 * psi * f, first_sum = micro_steps == 1 ? p : s;
        CHECK(sent(0) == doctest::Approx(first_sum + s));
        CHECK(sent(1) == doctest::Approx(first_sum + p));
        CHECK(sent(2) == doctest::Approx((micro_steps + 1) * p));
        CHECK(sent(3) == doctest::Approx(3 * micro_steps * p));
      }
    }
  }
}

TEST_CASE("plan: state is the ZeRO paper's table of bytes a parameter") {
  for (const double ranks : {1.0, 4.0, 64.0}) {
    CHECK(state_bytes(10, 0, ranks, 4) == 160);
    CHECK(state_bytes(10, 1, ranks, 4) == 10 * (8 + 8 / ranks));
    CHECK(state_bytes(10, 2, ranks, 4) == 10 * (4 + 12 / ranks));
    CHECK(state_bytes(10, 3, ranks, 4) == 10 * (16 / ranks));
    CHECK(state_bytes(10, 0, ranks, 2) == 160);
    CHECK(state_bytes(10, 1, ranks, 2) == 10 * (4 + 12 / ranks));
    CHECK(state_bytes(10, 2, ranks, 2) == 10 * (2 + 14 / ranks));
    CHECK(state_bytes(10, 3, ranks, 2) == 10 * (16 / ranks));
  }
}

TEST_CASE("plan: state that is offloaded is not in device memory") {
  CHECK(state_bytes(10, 2, 2, 4, true) == 10 * (4 + 4 / 2.0));
  CHECK(state_bytes(10, 2, 2, 2, true) == 10 * (2 + 2 / 2.0));
  CHECK(state_bytes(10, 3, 2, 4, true, true) == 10 * (4 / 2.0));
  CHECK(state_bytes(10, 2, 2, 4, false, true) == state_bytes(10, 2, 2, 4));  // stage 2 has no shards
}

TEST_CASE("plan: leaves are neighbours in time in stages 0 and 1, in rank in stages 2 and 3; each is computed once") {
  for (const int stage : {0, 1, 2, 3}) {
    std::vector<int> seen(8);
    for (int rank = 0; rank < 4; ++rank) {
      for (int micro = 0; micro < 2; ++micro) ++seen[static_cast<std::size_t>(leaf(shape(stage, 4, 2), rank, micro))];
    }
    CHECK(seen == std::vector<int>(8, 1));
  }
  CHECK(leaf(shape(1, 4, 2), 1, 1) == 3);
  CHECK(leaf(shape(3, 4, 2), 1, 1) == 5);
}

TEST_CASE(
    "passes: selective_gather leaves one gather a unit where the budget allows, and none saved where it does not") {
  const Plan plan = baseline(shape(3));
  const auto gathers = [&](std::int64_t budget) {
    return count(compile(plan, {"selective_gather"}, {budget}), Kind::gather);
  };
  CHECK(count(plan, Kind::gather) == 16);
  CHECK(gathers(1'000'000) == 4);
  CHECK(gathers(1416) > 4);
  CHECK(gathers(1416) < 16);
  CHECK(gathers(10) == 16);
  CHECK(peak_gathered(compile(plan, {"selective_gather"}, {1500})) <= 1500);
}

TEST_CASE("passes: prefetch starts a gather before the computation that it hides behind") {
  const std::string text = ops(compile(baseline(shape(3, 2, 1)), {"prefetch"}, {}));
  CHECK(
      text.starts_with("gather embedding\ngather_wait embedding\ngather h.0\nforward embedding @0\ngather_wait "
                       "h.0\ngather h.1\nforward h.0 @0\n"));
  const std::string stage1 = ops(compile(baseline(shape(1, 2, 1)), {"prefetch"}, {}));
  CHECK(stage1.find("step embedding\ngather embedding\nstep h.0\ngather h.0\n") != std::string::npos);
  CHECK(stage1.ends_with("gather_wait embedding\ngather_wait h.0\ngather_wait h.1\ngather_wait head\n"));
}

TEST_CASE("passes: overlap_reduce finishes and adds a reduction behind the next backward") {
  const auto reduced = [](int stage) { return ops(compile(baseline(shape(stage, 2, 1)), {"overlap_reduce"}, {})); };
  CHECK(reduced(2).find("reduce head @0\nbackward h.1 @0\nreduce h.1 @0\nreduce_wait head @0\naccumulate head @0\n"
                        "backward h.0 @0\n") != std::string::npos);
  // The parameters of its unit go meanwhile.
  CHECK(reduced(3).find("reduce head @0\nrelease head\ngather h.1\ngather_wait h.1\nbackward h.1 @0\n"
                        "reduce h.1 @0\nreduce_wait head @0\naccumulate head @0\nrelease h.1\n") != std::string::npos);
}

TEST_CASE("passes: a wrong order, an unknown name and a repetition are errors that say what to do") {
  const Plan plan = baseline(shape(3));
  CHECK_THROWS_WITH_AS(
      compile(plan, {"prefetch", "selective_gather"}, {}),
      "pass 'selective_gather' must run before there are early gathers: use --passes selective_gather,prefetch", Error);
  CHECK_THROWS_WITH_AS(compile(plan, {"prefech"}, {}), "there is no pass 'prefech', did you mean 'prefetch'?", Error);
  CHECK_THROWS_WITH_AS(compile(plan, {"prefetch", "prefetch"}, {}), "pass 'prefetch' is named twice", Error);
}

TEST_CASE("check: finds what would change the result") {
  const auto broken = [](int stage, auto change) {
    Plan plan = baseline(shape(stage));
    change(plan.ops);
    CHECK_THROWS_AS(check(plan), Error);
  };
  const auto drop = [](Kind kind) {
    return [kind](std::vector<Op>& ops) {
      ops.erase(std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return op.kind == kind; }));
    };
  };
  for (const Kind kind : {Kind::gather, Kind::gather_wait, Kind::release, Kind::forward, Kind::backward, Kind::reduce,
                          Kind::reduce_wait, Kind::norm, Kind::step}) {
    broken(3, drop(kind));
  }
  for (const int stage : {0, 1, 2, 3}) broken(stage, drop(Kind::accumulate));
  // The first micro-step's shard is added before it is there, after the second one's backward, after the norm, twice.
  const auto place = [](Kind kind, int unit, int micro) {
    return [=](std::vector<Op>& ops) { return std::find(ops.begin(), ops.end(), Op{kind, unit, micro}); };
  };
  const auto move_accumulate = [&](auto behind) {
    return [=](std::vector<Op>& ops) {
      ops.erase(place(Kind::accumulate, 1, 0)(ops));
      ops.insert(behind(ops) + 1, {Kind::accumulate, 1, 0});
    };
  };
  for (const int stage : {2, 3}) {
    broken(stage, move_accumulate(place(Kind::reduce, 1, 0)));
    broken(stage, move_accumulate(place(Kind::backward, 1, 1)));
    broken(stage, move_accumulate(place(Kind::norm, -1, -1)));
    broken(stage, [&](std::vector<Op>& ops) {
      ops.insert(place(Kind::accumulate, 1, 0)(ops), {Kind::accumulate, 1, 0});
    });
  }
  // The head adds to the embedding's gradient before its own backward is done, also in the second micro-step.
  broken(2, [&](std::vector<Op>& ops) {
    const auto wait = place(Kind::reduce_wait, 0, 0)(ops);
    std::rotate(wait, wait + 2, place(Kind::backward, 3, 1)(ops) + 1);
  });
  broken(0, drop(Kind::gather_grad_wait));
  broken(2, [](std::vector<Op>& ops) { std::swap(ops.front(), ops.back()); });
  broken(1, [](std::vector<Op>& ops) { ops.push_back(ops.back()); });
}

/// With what a stage can offload.
Shape offloading(int stage, int ranks = 2, int micro_steps = 2, bool checkpointing = false) {
  Shape layout = shape(stage, ranks, micro_steps, checkpointing);
  layout.offload_optimizer = true;
  layout.offload_parameters = stage == 3;
  return layout;
}

TEST_CASE("offload: every stage gives a plan that passes its check, also after passes, and loads and stores in pairs") {
  for (const int stage : {1, 2, 3}) {
    for (const int ranks : {1, 2}) {
      for (const int micro_steps : {1, 4}) {
        for (const bool checkpointing : {false, true}) {
          const Plan plan = baseline(offloading(stage, ranks, micro_steps, checkpointing));
          CHECK_NOTHROW(check(plan));
          CHECK(count(plan, Kind::load) == 4);
          CHECK(count(plan, Kind::store) == 4);
          CHECK(count(plan, Kind::store_shard) == (stage == 3 ? 4 : 0));
          for (const auto& names : std::vector<std::vector<std::string>>{
                   usual_passes(), {"prefetch"}, {"selective_gather"}, {"overlap_reduce"}}) {
            for (const std::int64_t budget : {10, 1416, 1'000'000}) {
              const Plan compiled = compile(plan, names, {budget});
              const std::int64_t gathers = stage == 3 ? count(compiled, Kind::gather) : 0;
              CHECK(count(compiled, Kind::load_shard) == (stage == 3 ? gathers + 4 : 0));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("offload: the next unit's state is loaded while one is updated, and a shard while another unit computes") {
  const std::string text = ops(baseline(offloading(3, 2, 1)));
  CHECK(
      text.starts_with("load_shard embedding\ngather embedding\ngather_wait embedding\nload_shard h.0\nforward "
                       "embedding @0\ngather h.0\ngather_wait h.0\nload_shard h.1\nforward h.0 @0\n"));
  CHECK(
      text.ends_with("load embedding\nload_shard embedding\nnorm\n"
                     "load h.0\nload_shard h.0\nstep embedding\nstore embedding\nstore_shard embedding\n"
                     "load h.1\nload_shard h.1\nstep h.0\nstore h.0\nstore_shard h.0\n"
                     "load head\nload_shard head\nstep h.1\nstore h.1\nstore_shard h.1\n"
                     "step head\nstore head\nstore_shard head\n"));
}

TEST_CASE("offload: the check finds a use before the load, a change that is not stored, a load or store too many") {
  for (const Kind kind : {Kind::load, Kind::store, Kind::load_shard, Kind::store_shard}) {
    const Plan plan = baseline(offloading(3));
    const auto place = [&](std::vector<Op>& ops) {
      return std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return op.kind == kind; });
    };
    Plan without = plan, twice = plan, late = plan, none = plan;
    without.ops.erase(place(without.ops));
    CHECK_THROWS_AS(check(without), Error);
    const auto one = place(twice.ops);
    twice.ops.insert(one, Op(*one));
    CHECK_THROWS_AS(check(twice), Error);
    const auto moved = place(late.ops);
    std::rotate(moved, moved + 1, late.ops.end());
    if (kind == Kind::load || kind == Kind::load_shard) CHECK_THROWS_AS(check(late), Error);
    none.shape.offload_optimizer = none.shape.offload_parameters = false;
    CHECK_THROWS_AS(check(none), Error);
  }
  CHECK(hash(baseline(offloading(2))) != hash(baseline(shape(2))));
}

/// With a secondary partition of K of N ranks.
Shape partitioned_twice(int secondary, int ranks, int micro_steps = 2, bool checkpointing = false) {
  Shape layout = shape(3, ranks, micro_steps, checkpointing);
  layout.secondary = secondary;
  return layout;
}

TEST_CASE(
    "secondary partition: one gather of all ranks a unit and step, every other within the group, also after passes") {
  for (const int micro_steps : {1, 4}) {
    for (const bool offloads : {false, true}) {
      for (const bool checkpointing : {false, true}) {
        Shape layout = partitioned_twice(2, 8, micro_steps, checkpointing);
        layout.offload_optimizer = layout.offload_parameters = offloads;
        const Plan plan = baseline(layout);
        CHECK_NOTHROW(check(plan));
        CHECK(count(plan, Kind::gather) == 4);
        CHECK(count(plan, Kind::partition) == 4);
        CHECK(count(plan, Kind::gather_secondary) == 4 * (2 * micro_steps - 1));
        CHECK(count(plan, Kind::load_shard) == (offloads ? 8 : 0));  // for one gather, and for the update
        for (const auto& names : std::vector<std::vector<std::string>>{
                 usual_passes(), {"prefetch"}, {"selective_gather"}, {"overlap_reduce"}}) {
          for (const std::int64_t budget : {10, 1416, 1'000'000}) {
            const Plan compiled = compile(plan, names, {budget});
            CHECK(count(compiled, Kind::gather) == 4);
            if (names != std::vector<std::string>{"prefetch"} && names != std::vector<std::string>{"overlap_reduce"} &&
                budget == 1'000'000)
              CHECK(count(compiled, Kind::gather_secondary) + count(compiled, Kind::partition) == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("secondary partition: bytes by link are P + (2 A - 1) P' + A P, and none of P' leaves a node of K ranks") {
  const double psi = 1816;
  for (const int micro_steps : {1, 4}) {
    const Plan plan = baseline(partitioned_twice(2, 8, micro_steps)), flat = baseline(shape(3, 8, micro_steps));
    const int a = micro_steps;
    CHECK(sent_bytes(plan, 4) == doctest::Approx(4 * psi * ((1 + a) * 7 / 8.0 + (2 * a - 1) / 2.0)));
    CHECK(sent_between_nodes(plan, 4, 2) == doctest::Approx(4 * psi * (1 + a) * 6 / 8.0));
    CHECK(sent_between_nodes(flat, 4, 2) == doctest::Approx(4 * psi * 3 * a * 6 / 8.0));
    CHECK(sent_between_nodes(plan, 4, 8) == 0);
    // Groups of two nodes: half of what the others of a group are sent leaves the node.
    CHECK(sent_between_nodes(baseline(partitioned_twice(4, 8, 1)), 4, 2) ==
          doctest::Approx(4 * psi * (2 * 6 / 8.0 + 2 / 4.0)));
  }
  CHECK(state_bytes(10, 3, 8, 4, false, false, 2) == state_bytes(10, 3, 8, 4) + 10 * 4 / 2.0);
}

TEST_CASE("secondary partition: the check finds a gather from what is not there, and from the step before") {
  const Plan plan = baseline(partitioned_twice(2, 4));
  const auto place = [](std::vector<Op>& ops, Kind kind) {
    return std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return op.kind == kind; });
  };
  for (const Kind kind : {Kind::partition, Kind::gather_secondary}) {
    Plan without = plan;
    without.ops.erase(place(without.ops, kind));
    CHECK_THROWS_AS(check(without), Error);
  }
  Plan twice = plan, early = plan, off = plan;
  const auto one = place(twice.ops, Kind::partition);
  twice.ops.insert(one, Op(*one));
  CHECK_THROWS_AS(check(twice), Error);
  std::iter_swap(place(early.ops, Kind::partition), place(early.ops, Kind::gather_wait));
  CHECK_THROWS_AS(check(early), Error);
  off.shape.secondary = 0;
  CHECK_THROWS_AS(check(off), Error);
}

TEST_CASE("integers: parameters travel in 8 bits from the first partition alone, gradients in 4") {
  const double eight = codec_bytes(1000, 8) + 2 * codec_bytes(400, 8) + codec_bytes(16, 8),
               four = codec_bytes(1000, 4) + 2 * codec_bytes(400, 4) + codec_bytes(16, 4), psi = 1816;
  CHECK(codec_bytes(256 * 1280, 8) == 256 * (1280 + 40));
  CHECK(codec_bytes(256 * 1280, 4) == 256 * (640 + 40));
  Shape layout = shape(3, 8, 2);
  layout.quantized_weights = true;
  CHECK(sent_bytes(baseline(layout), 4) == doctest::Approx((4 * eight + 2 * 4 * psi) * 7 / 8));
  layout.quantized_gradients = true;
  CHECK(sent_bytes(baseline(layout), 2) == doctest::Approx((4 * eight + 2 * four) * 7 / 8));
  layout.secondary = 4;
  CHECK(sent_bytes(baseline(layout), 2) == doctest::Approx((eight + 2 * four) * 7 / 8 + 3 * 2 * psi * 3 / 4));
  CHECK(hash(baseline(layout)) != hash(baseline(shape(3, 8, 2))));
}

TEST_CASE("FP8: weights of products travel in 8 bits where ranks share them, with their scales once a step") {
  Shape layout = shape(3, 8, 2);
  layout.float8_gathers = true;
  CHECK(sent_bytes(baseline(layout), 2) == sent_bytes(baseline(shape(3, 8, 2)), 2));  // no unit has such weights
  layout.units[0].float8 = 992, layout.units[0].float8_scales = 4;
  // 125 numbers of 1000 a rank, of which 8 may have 16 bits.
  CHECK(float8_bytes(1000, 992, 8) == 8 * (125 + 8));
  CHECK(float8_bytes(1000, 10, 8) == 8 * 250);
  CHECK(float8_bytes(1001, 1001, 8) == 8 * 126);
  const double saved = 4 * (2 * 1000 - 8 * 133) * 7.0 / 8 - 4 * 4 * 7;
  CHECK(sent_bytes(baseline(layout), 2) == doctest::Approx(sent_bytes(baseline(shape(3, 8, 2)), 2) - saved));
  CHECK(sent_between_nodes(baseline(layout), 2, 8) == 0);
  CHECK(hash(baseline(layout)) != hash(baseline(shape(3, 8, 2))));
  layout.ranks = 1;
  CHECK(encoded_bytes(layout.units[0], layout) == 0);
}

TEST_CASE("hash: differs where ranks would do different things") {
  CHECK(hash(baseline(shape(3))) == hash(baseline(shape(3))));
  CHECK(hash(baseline(shape(3))) != hash(baseline(shape(2))));
  CHECK(hash(baseline(shape(3))) != hash(compile(baseline(shape(3)), {"prefetch"}, {})));
}

TEST_CASE("plan: the micro-batches of a step are each of one rank's micro-steps, on any number of ranks") {
  for (const int stage : kStages) {
    for (int ranks = 1; ranks <= 13; ++ranks) {
      for (std::int64_t leaves = 1; leaves <= 40; ++leaves) {
        CAPTURE(stage);
        CAPTURE(ranks);
        CAPTURE(leaves);
        Shape shape{{stage, ranks}};
        shape.divide(leaves);
        CHECK(shape.leaves() == leaves);
        CHECK(shape.short_ranks < ranks);
        std::vector<int> owners(static_cast<std::size_t>(leaves));
        std::size_t in_last = 0;
        bool in_front = true;  // who has one less has none in the last micro-step alone
        for (int rank = 0; rank < ranks; ++rank) {
          for (int micro = 0; micro < shape.micro_steps; ++micro) {
            const std::int64_t held = leaf(shape, rank, micro);
            in_front = in_front && (held >= 0 || micro + 1 == shape.micro_steps);
            if (held >= 0) ++owners.at(static_cast<std::size_t>(held));
            in_last += held >= 0 && micro + 1 == shape.micro_steps;
          }
        }
        CHECK(in_front);
        CHECK(in_last == static_cast<std::size_t>(ranks - shape.short_ranks));
        CHECK(std::all_of(owners.begin(), owners.end(), [](int count) { return count == 1; }));
        // What the ranks bring is the whole step, or the whole micro-step.
        const bool by_step = !shape.divided().gradients;
        for (int micro = by_step ? -1 : 0; micro < (by_step ? 0 : shape.micro_steps); ++micro) {
          const tree::Addends total = addends(shape, micro);
          CHECK(total.sums.front().begin == (by_step ? 0 : std::int64_t{micro} * ranks));
          CHECK(total.sums.back().end == (by_step ? leaves : std::min(leaves, (micro + std::int64_t{1}) * ranks)));
          if (by_step) CHECK(total.sums.size() == 1);
        }
      }
    }
  }
}

TEST_CASE("plan: bytes where a rank's micro-batches are several subtrees; as before where they are one") {
  const auto sent = [](int stage, int ranks, std::int64_t leaves) {
    Shape shape{{stage, ranks}, {{"u", 1200}}};
    shape.divide(leaves);
    return sent_bytes(baseline(shape), 4);
  };
  const double whole = 4800;
  CHECK(sent(1, 4, 4) == 2 * whole * 3 / 4);
  CHECK(sent(1, 3, 12) == 2 * whole * 2 / 3);        // 4 leaves each: one subtree
  CHECK(sent(1, 4, 12) == (2 + 1) * whole * 3 / 4);  // 3 each: a pair and one
  CHECK(sent(2, 4, 12) == (3 + 1) * whole * 3 / 4);  // one leaf a micro-step
  CHECK(sent(2, 4, 10) == doctest::Approx((2.5 + 1) * whole * 3 / 4));
}

TEST_CASE("plan: ranks that share sequences have each chunk of each micro-batch once, neighbours in rank and chunk") {
  for (const int stage : kStages) {
    for (const int sequence : {1, 2, 3, 4}) {
      for (const int chunks : {1, 2, 3}) {
        for (const int groups : {1, 2, 5}) {
          for (const std::int64_t micro_batches : {1, 2, 5, 7}) {
            Shape shape{{.stage = stage, .ranks = groups * sequence, .sequence = sequence, .chunks = sequence * chunks},
                        {{"u", 100}}};
            shape.divide(micro_batches);
            CAPTURE(stage);
            CAPTURE(sequence);
            CAPTURE(chunks);
            CAPTURE(groups);
            CAPTURE(micro_batches);
            CHECK(shape.leaves() == micro_batches * sequence * chunks);
            std::vector<int> owners(static_cast<std::size_t>(shape.leaves()));
            for (int rank = 0; rank < shape.ranks; ++rank) {
              for (int micro = 0; micro < shape.micro_steps; ++micro) {
                const std::int64_t first = leaf(shape, rank, micro);
                if (first < 0) continue;
                for (int chunk = 0; chunk < chunks; ++chunk) ++owners.at(static_cast<std::size_t>(first + chunk));
                // Of one micro-batch with the others of its group, in their order.
                CHECK(first % (sequence * chunks) == rank % sequence * chunks);
                const std::int64_t before = rank % sequence == 0 ? first : leaf(shape, rank - 1, micro) + chunks;
                CHECK(before == first);
              }
            }
            CHECK(std::all_of(owners.begin(), owners.end(), [](int count) { return count == 1; }));
            CHECK_NOTHROW(check(baseline(shape)));
            const bool by_step = !shape.divided().gradients;
            CHECK(by_step == (stage < 2 && sequence == 1));
            for (int micro = by_step ? -1 : 0; micro < (by_step ? 0 : shape.micro_steps); ++micro)
              CHECK_NOTHROW(addends(shape, micro));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace zs::plan
