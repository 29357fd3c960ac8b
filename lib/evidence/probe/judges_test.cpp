// SPDX-License-Identifier: Apache-2.0
// Each judge of one recording but those of gradients, on steps that are made by hand: what holds, and a fault that it
// must name.
#include "probe/judges_test.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace zs::probe {
namespace {

/// Muon at rate 0.1: the direction, and by how much the parameter moves.
Made muon(const std::string& place, const Sketch& direction, const Sketch& moved) {
  Made made;
  made.group("Muon", {{"lr", number(0.1)}}, {"w"});
  made.from.at("param/w") = matrix(kA);
  made.step.tensors.at(place + "/w") = matrix(direction);
  made.step.tensors.at("param/w") = matrix(plus(kA, moved));
  return made;
}

}  // namespace

TEST_CASE("judges: Muon moves by its rate along a direction of orthogonal size") {
  const Sketch direction = times(0.4, kB);
  Made right = muon("direction", direction, times(-0.1, direction));
  CHECK(judged(right, judge_updates).held() == 1);
  Made more = muon("direction", direction, times(-0.2, direction));
  CHECK(has(said(judged(more, judge_updates)), "param/w: moves by -0.2"));
  Made longer = muon("direction", times(3, kB), times(-0.3, kB));
  CHECK(has(said(judged(longer, judge_updates)), "direction/w: is longer than an orthogonal direction"));
  Made plain = muon("grad", direction, times(-0.1, direction));
  CHECK(has(said(judged(plain, judge_updates)), "gradient: plain SGD, expected the orthogonal direction of Muon"));
  Made other = muon("grad", kC, times(-0.1, direction));
  CHECK(judged(other, judge_updates).held() == 1);
}

TEST_CASE("judges: a copy may be either of two nearest values") {
  const auto made = [](double copy) {
    Made one;
    for (const char* const name : {"param/w", "model/w"}) one.step.tensors.at(name) = matrix(kA);
    one.step.tensors.at("param/w").elements = {1.00390625};  // in the middle of 1 and 1.0078125
    Tensor& low = one.step.tensors.at("model/w");
    low.elements = {copy}, low.dtype = "BF16";
    return one;
  };
  Made even = made(1), up = made(1.0078125), far = made(1.015625);
  CHECK(judged(even, judge_masters).held() == 1);
  CHECK(judged(up, judge_masters).held() == 1);
  CHECK(judged(far, judge_masters).broken() == 1);
}

TEST_CASE("judges: a kernel may take 1 - beta in float32, and keep its moments in fewer bits than it updates with") {
  const auto made = [](const std::string& kept, double takes, double rate) {
    Made one;
    one.group("FusedAdam", {{"lr", number(0.1)}, {"betas", {{0.9, 0.999}, ""}}, {"weight_decay", number(0)}}, {"w"});
    one.step.ranks[0].counters["2"] = {"w"};
    const auto put = [&](Tensors& into, const std::string& name, const Sketch& sums, double element, bool low = false) {
      Tensor& tensor = into.at(name) = matrix(sums);
      tensor.dtype = low ? kept : "F32", tensor.elements = {low ? rounded_to(element, kept) : element};
    };
    put(one.from, "param/w", kA, 1), put(one.from, "state.exp_avg/w", kA, 0.25);
    put(one.from, "state.exp_avg_sq/w", kB, 0.0625), put(one.step.tensors, "grad/w", kC, 0.3);
    const double first = 0.9 * 0.25 + 0.1 * 0.3, second = 0.999 * 0.0625 + takes * 0.09;
    put(one.step.tensors, "state.exp_avg/w", plus(times(0.9, kA), times(0.1, kC)), first, true);
    put(one.step.tensors, "state.exp_avg_sq/w", kB, second, true);
    const double moved = first / (1 - 0.81) / (std::sqrt(second / (1 - 0.999 * 0.999)) + 1e-8);
    put(one.step.tensors, "param/w", kB, 1 - rate * moved);
    return one;
  };
  const double in_float32 = 1.0F - 0.999F;
  for (const char* const kept : {"F32", "BF16", "F16", "F8_E4M3"}) {
    CAPTURE(kept);
    Made right = made(kept, in_float32, 0.1), other = made(kept, in_float32, 0.101);
    CHECK(judged(right, judge_moments).held() == 2);
    CHECK(judged(right, judge_updates).held() == 1);
    CHECK(judged(other, judge_updates).broken() == 1);
  }
  Made twice = made("F32", 0.002, 0.1);
  CHECK(judged(twice, judge_moments).broken() == 1);
  Made sliced = made("F32", in_float32, 0.1);
  Tensor& after = sliced.step.tensors.at("param/w");
  after.elements.clear(), after.pieces.front().contiguous = false;
  const Tally slices = judged(sliced, judge_updates);
  REQUIRE(slices.missing().size() == 1);
  CHECK(has(*slices.missing().begin(), "ranks hold slices of parts of w"));
}

TEST_CASE("judges: an optimizer of another package, or with an option that is not known, has no rule") {
  const auto told = [](const std::string& optimizer, std::map<std::string, Option> options) {
    options["lr"] = number(0.1), options["betas"] = {{0.9, 0.999}, ""};
    const Group group{std::move(options), {"w"}, optimizer};
    const auto rule = rule_of(group);
    return rule ? rule->decoupled ? "decoupled" : "coupled" : rule_name(group);
  };
  const auto text = [](const std::string& value) { return Option{{}, value}; };
  CHECK(told("AdamW", {{"amsgrad", text("false")}, {"foreach", text("null")}}) == "decoupled");
  CHECK(told("Adam", {}) == "coupled");
  CHECK(told("AdamW", {{"package", text("optimi")}}) == "optimi.AdamW");
  CHECK(told("Lion", {{"package", text("__main__")}}) == "__main__.Lion");
  CHECK(told("FusedAdam", {{"package", text("deepspeed")}, {"bias_correction", text("true")}}) == "decoupled");
  CHECK(told("FusedAdam", {{"bias_correction", text("false")}}) == "FusedAdam with bias_correction");
  CHECK(told("FusedAdam", {{"decoupled_weight_decay", text("false")}}) == "coupled");
  CHECK(told("AdamW", {{"cautious", text("true")}}) == "AdamW with cautious");
  CHECK(told("AdamW", {{"cautious", text("false")}, {"alpha", number(0)}}) == "decoupled");
  CHECK(told("AdamW", {{"lr_scale", number(0.5)}, {"tags", text(R"(["lr_scale"])")}}) == "decoupled");
}

TEST_CASE("judges: Muon's directions are not clipped") {
  Made made = muon("direction", times(0.4, kB), times(-0.04, kB));
  const double size = std::sqrt(made.step.tensors.find("direction/w")->squares);
  made.step.scalars = {{"norm", 5}, {"clip", size}};
  CHECK(has(said(judged(made, judge_norm)), "Muon's directions have together the norm of the bound of clipping"));
  made.step.scalars["clip"] = size / 2;
  CHECK(judged(made, judge_norm).broken() == 0);
  made.step.scalars["norm"] = size;
  CHECK(judged(made, judge_norm).held() == 1);
}

TEST_CASE("judges: Muon's momentum keeps what its option says, also where directions replace gradients") {
  const auto told = [](double kept) {
    Made made = muon("direction", times(0.4, kB), times(-0.04, kB));
    made.step.groups[0].options["momentum"] = number(0.95);
    made.micro(0, 0, "w", kB), made.micro(1, 0, "w", kC);
    made.from.at("state.momentum_buffer/w") = matrix(kA);
    made.step.tensors.at("state.momentum_buffer/w") =
        matrix(plus(times(kept, kA), times((1 - kept) / 2, plus(kB, kC))));
    return said(judged(made, judge_moments));
  };
  CHECK(told(0.95) == "");
  CHECK(told(0.9) == "state.momentum_buffer/w: keeps 0.9000 of the state before, expected 0.9500");
}

TEST_CASE("judges: a rate is what its schedule's formula says, and without a formula groups move alike") {
  const auto told = [](std::optional<std::vector<probefile::Real>> formula, double first, double second) {
    Made made;
    made.step.ranks[0].schedules.push_back({"WarmupLR", 1, {{first}, {second}}, std::move(formula)});
    made.group("AdamW", {{"lr", number(first)}, {"initial_lr", number(0.1)}}, {"a"});
    made.group("AdamW", {{"lr", number(second)}, {"initial_lr", number(0.2)}}, {"b"});
    Tally tally;
    RateJudge judge(made.run, tally);
    judge.step(made.moment());
    return said(tally) + (tally.missing().empty() ? "" : *tally.missing().begin());
  };
  using Rates = std::vector<probefile::Real>;
  CHECK(told(Rates{{0.05}, {0.1}}, 0.05, 0.1) == "");
  CHECK(told(Rates{{0.05}, {0.02}}, 0.05, 0.02) == "");  // each group has a formula of its own
  CHECK(has(told(Rates{{0.05}, {0.1}}, 0.05, 0.2), "WarmupLR"));
  CHECK(told(std::nullopt, 0.05, 0.1) == "");
  CHECK(has(told(std::nullopt, 0.05, 0.2), "and no formula is known"));  // a floor that groups share, or a fault
}

TEST_CASE("judges: a step has as many micro-batches as it is told") {
  Made made;
  made.micro(0, 0, "w", kA), made.micro(0, 1, "w", kB);
  made.step.scalars = {{"accumulation", 2}};
  CHECK(judged(made, judge_micro_batches).held() == 1);
  made.step.scalars = {{"accumulation", 4}};
  CHECK(has(said(judged(made, judge_micro_batches)), "2 for an accumulation of 4: x 1/2"));
  made.step.scalars = {{"accumulation", 1}};  // the training's own loop accumulates
  CHECK(judged(made, judge_micro_batches).broken() == 0);
  CHECK(judged(made, judge_micro_batches).notes().size() == 1);
}

TEST_CASE("judges: a batch is not read again, unless each one is") {
  const auto told = [](const std::string& batches) {
    Made made;
    Tally tally;
    SampleJudge judge(made.run, tally);
    for (std::size_t i = 0; i < batches.size(); ++i) {
      made.step.ranks[0].batch = {{std::string(1, batches[i])}};
      judge.step({static_cast<std::int64_t>(i) + 1, made.step, nullptr, nullptr});
    }
    judge.end();
    return said(tally);
  };
  CHECK(told("abcd") == "");
  CHECK(told("abcabc") == "");
  CHECK(told("aabbcc") == "");
  CHECK(has(told("aabc"), "has the samples of step 1 again, and step 3 has new ones"));
  CHECK(has(told("aab"), "has the samples of step 1 again"));
  CHECK(has(told("abbc"), "has the samples of step 2 again"));
}

TEST_CASE("judges: a schedule moves once a step, or where epochs end; with Accelerate once for each rank") {
  const auto told = [](const std::string& name, const std::vector<std::int64_t>& counts) {
    Made made;
    Tally tally;
    RateJudge judge(made.run, tally);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      made.step.ranks[0].schedules = {{name, counts[i], {}, std::nullopt}};
      judge.step({static_cast<std::int64_t>(i) + 1, made.step, nullptr, nullptr});
    }
    return said(tally);
  };
  CHECK(told("LambdaLR", {1, 2, 3, 4}) == "");
  CHECK(has(told("LambdaLR", {1, 2, 4, 5}), "moved 2 times in 1 step"));
  CHECK(has(told("LambdaLR", {1, 2, 3, 3}), "moved 0 times in 1 step"));
  CHECK(told("StepLR", {0, 0, 0, 1, 1, 2, 2}) == "");
  CHECK(has(told("StepLR", {1, 1, 2, 3}), "moves in each of several steps later"));
  CHECK(has(told("LambdaLR", {2, 4, 6}), "moved 2 times in 1 step"));
  CHECK(told("LambdaLR of Accelerate", {2, 4, 6}) == "");
  CHECK(told("CosineAnnealingLR with SWALR", {1, 2, 2, 3, 5}) == "");
}

TEST_CASE("judges: samples of a micro-batch that were not seen are not checked") {
  Made made;
  Tally tally;
  SampleJudge judge(made.run, tally);
  made.step.ranks[0].batch = {{}, {"a", "b"}, {}};
  judge.step(made.moment());
  CHECK(tally.held() == 1);
  CHECK(tally.broken() == 0);
  made.step.ranks[0].batch = {{}, {}};
  judge.step(made.moment());
  CHECK(tally.held() == 1);
}

TEST_CASE("judges: a counter that moves without a gradient is named") {
  Made made;
  made.group("AdamW", {{"lr", number(0.1)}, {"betas", {{0.9, 0.999}, ""}}}, {"w"});
  made.step.tensors.at("grad/w") = matrix(Sketch(8, 0));
  made.step.tensors.at("state.exp_avg/w") = matrix(Sketch(8, 0));
  made.step.ranks[0].counters = {{"1", {"w"}}};
  Tally tally;
  CounterJudge judge(made.run, tally);
  judge.step(made.moment());
  CHECK(
      has(said(tally), "counter: the optimizer made a step without a backward: all gradients and all state are zero"));
  CHECK(has(said(tally), "x 0.7441"));
}

TEST_CASE("judges: a counter stands where its parameter has no gradient, and moves where it has one") {
  const auto told = [](const std::vector<std::pair<std::string, bool>>& steps, std::int64_t stride = 1) {
    Made made;
    Tally tally;
    CounterJudge judge(made.run, tally);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      Step step;
      step.ranks[0].batch = {{"a"}};
      step.ranks[0].counters = {{steps[i].first, {"w"}}};
      if (steps[i].second) step.tensors.at("grad/w") = matrix(kA);
      judge.step({1 + static_cast<std::int64_t>(i) * stride, step, nullptr, nullptr});
    }
    return said(tally) + (tally.missing().empty() ? "" : "lacks");
  };
  CHECK(told({{"1", true}, {"1", false}, {"2", true}}) == "");
  CHECK(told({{"1", true}, {"2", false}}) == "");  // a group counts for all of its parameters
  CHECK(has(told({{"1", true}, {"1", true}}), "is 1, expected 2"));
  CHECK(has(told({{"1", true}, {"3", false}}), "is 3, expected 2"));
  CHECK(has(told({{"1", true}, {"0", false}}), "is 0, expected 2"));
  CHECK(told({{"1", true}, {"11", true}}, 10) == "");
  CHECK(told({{"1", true}, {"5", true}}, 10) == "lacks");
  CHECK(has(told({{"1", true}, {"1", true}}, 10), "is 1, expected 11"));
}

TEST_CASE("judges: Adam's first moment follows from the gradient and the state before") {
  const auto told = [](double beta, bool half = false) {
    Made made;
    made.group("AdamW", {{"lr", number(0.1)}, {"betas", {{0.9, 0.999}, ""}}}, {"w"});
    Sketch moment = plus(times(beta, kC), times(1 - beta, kB));
    for (double& x : moment) x = half ? rounded_to(x, "BF16") : x;
    made.from.at("param/w") = made.step.tensors.at("param/w") = matrix(kA);
    made.from.at("state.exp_avg/w") = matrix(kC);
    made.step.tensors.at("grad/w") = matrix(kB);
    made.step.tensors.at("state.exp_avg/w") = matrix(moment);
    for (Tensors* const tensors : {&made.from, &made.step.tensors}) {
      for (const auto& [name, tensor] : tensors->all()) tensors->at(name).elements = tensor.sketch;
    }
    return said(judged(made, judge_moments));
  };
  CHECK(told(0.9) == "");
  CHECK(has(told(0.8), "state.exp_avg/w: is 0.2"));
  CHECK(has(told(0.9, true), "does not follow from the state before and the gradient, as far apart as rounding to"));
}

TEST_CASE("judges: forward computes with what the last update left") {
  Made made;
  made.run.steps[1].tensors.at("param/w") = matrix(kA);
  const Moment now{2, made.step, &made.run.steps.at(1), &made.from};
  made.step.tensors.at("begin/w") = matrix(times(0.5, kA));
  Tally tally;
  judge_found(made.run, tally, now);
  CHECK(has(said(tally), "begin/w: forward computes with other values than the update of step 1 left: x 1/2"));
  Sketch some = kA;
  some[1] = some[4] = 0;
  made.step.tensors.at("begin/w") = matrix(some);
  made.run.steps[1].tensors.at("param/w").elements = kA, made.step.tensors.at("begin/w").elements = some;
  Tally fewer;
  judge_found(made.run, fewer, now);
  CHECK(has(said(fewer), "left: elements are set to zero, as pruning does"));
}

TEST_CASE("judges: what is trained moves, and what is frozen does not") {
  const auto told = [](bool frozen, bool moves, double rate) {
    Made made;
    if (frozen) made.run.frozen.insert("w");
    Tally tally;
    MotionJudge judge(made.run, tally);
    for (int number = 0; number < 3; ++number) {
      Step& step = made.run.steps[number];
      step.groups.assign({{{{"lr", {{rate}, ""}}}, {"w"}, "AdamW"}});
      step.tensors.at("param/w") = matrix(moves ? times(number + 1, kA) : kA);
      if (!frozen) step.tensors.at("grad/w") = matrix(kB);
      judge.step({number, step, nullptr, nullptr});
    }
    judge.end();
    return said(tally);
  };
  CHECK(told(false, true, 0.1) == "");
  CHECK(told(true, false, 0.1) == "");
  CHECK(has(told(true, true, 0.1), "is frozen, and moves"));
  CHECK(has(told(false, false, 0.1), "never moves in 2 steps, though its gradient is not zero"));
  CHECK(has(told(false, false, 0), "its group's rate is 0"));
}

TEST_CASE("judges: what is frozen at first may be trained later, and moves only from then on") {
  const auto told = [](std::size_t moves, std::size_t trained) {
    Made made;
    made.run.frozen.insert("w");
    Tally tally;
    MotionJudge judge(made.run, tally);
    for (std::size_t number = 1; number < 6; ++number) {
      Step& step = made.run.steps[static_cast<std::int64_t>(number)];
      step.tensors.at("param/w") = matrix(number >= moves ? times(static_cast<double>(number), kA) : kA);
      if (number >= trained) step.tensors.at("grad/w") = matrix(kB);
      judge.step({static_cast<std::int64_t>(number), step, nullptr, nullptr});
    }
    judge.end();
    return said(tally) + (tally.notes().empty() ? "" : *tally.notes().begin());
  };
  CHECK(told(3, 3) == "trained from step 3 on, and frozen before: w");
  CHECK(has(told(2, 3), "is frozen, and moves"));
  CHECK(has(told(3, 9), "is frozen, and moves"));
  CHECK(told(9, 9) == "");
}

}  // namespace zs::probe
