// SPDX-License-Identifier: Apache-2.0
// The judges of gradients and of their norm.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "probe/judges_test.hpp"

namespace zs::probe {

TEST_CASE("judges: a gradient is the mean of its micro-batches' gradients") {
  const auto made = [](double factor) {
    Made one;
    for (int by = 0; by < 2; ++by) one.micro(by, 0, "w", by == 0 ? kA : kB), one.micro(by, 1, "w", kC);
    one.step.tensors.at("grad/w") = matrix(times(factor / 2, plus(plus(kA, kB), times(2, kC))));
    return one;
  };
  Made right = made(1), twice = made(2);
  CHECK(judged(right, judge_gradients).held() == 1);
  CHECK(has(said(judged(twice, judge_gradients)), "grad/w: x 2"));
  Made lost = made(1);
  lost.step.tensors.at("grad/w") = matrix(times(0.5, plus(plus(kA, kB), kC)));
  CHECK(has(said(judged(lost, judge_gradients)), "is missing"));
  Made last;
  last.micro(0, 0, "w", kA), last.micro(0, 1, "w", kB), last.micro(0, 2, "w", kC);
  last.step.tensors.at("grad/w") = matrix(kC);
  CHECK(has(said(judged(last, judge_gradients)), "only the last of 3 micro-batches counts"));
}

TEST_CASE("judges: gradients that are set to zero before an update are not lost, unless other steps say so") {
  const auto made = [](const Sketch& gradient, const std::vector<std::vector<std::string>>& batch) {
    Made one;
    one.run.ranks = 1;
    one.micro(0, 0, "w", kA), one.micro(0, 1, "w", kB), one.micro(0, 2, "w", kC);
    one.step.scalars = {{"dropped", 1}};
    one.step.ranks[0].batch = batch;
    one.step.tensors.at("grad/w") = matrix(gradient);
    return one;
  };
  const Sketch kept = plus(kB, kC);
  Made again = made(kept, {{"a"}, {"a"}, {"b"}}), other = made(kept, {{"a"}, {"b"}, {"c"}}),
       added = made(plus(kA, kept), {{"a"}, {"b"}, {"c"}}), mixed = made(plus(kA, kB), {{"a"}, {"b"}, {"c"}});
  const Tally sam = judged(again, judge_gradients), unknown = judged(other, judge_gradients);
  CHECK((sam.held() == 1 && sam.missing().empty() && sam.notes().size() == 1));
  CHECK((unknown.held() == 1 && unknown.missing().size() == 1));
  CHECK(judged(added, judge_gradients).missing().empty());  // the training added them up by itself
  CHECK((judged(mixed, judge_gradients).broken() == 0 && judged(mixed, judge_gradients).missing().size() == 1));
  Step& whole = other.run.steps[1];  // which has as many micro-batches, and drops none
  whole.locals = other.step.locals;
  CHECK(has(said(judged(other, judge_gradients)), "grad/w: the first of 3 micro-batches is missing"));
  other.step.locals.at({0, 0}).tensors.at("w").squares = NAN;
  const Tally skipped = judged(other, judge_gradients);
  CHECK((skipped.broken() == 0 && skipped.missing().empty() && skipped.notes().size() == 1));
  Tally samples;
  SampleJudge judge(again.run, samples);
  judge.step(again.moment());
  CHECK(samples.broken() == 0);
}

TEST_CASE("judges: a gradient that is not set to zero has that of the step before") {
  Step before;
  before.tensors.at("grad/w") = matrix(kC);
  const auto told = [&](const Sketch& gradient) {
    Made made;
    made.run.ranks = 1;
    made.micro(0, 0, "w", kA), made.micro(0, 1, "w", kB);
    made.step.tensors.at("grad/w") = matrix(gradient);
    Tally tally;
    judge_gradients(made.run, tally, {2, made.step, &before, &made.from});
    return said(tally);
  };
  CHECK(told(plus(kA, kB)).empty());
  CHECK(has(told(plus(plus(kA, kB), kC)), "grad/w: has the gradient of the step before added"));
  CHECK(has(told(kC), "grad/w: is the gradient of the step before"));
  CHECK(has(told(plus(plus(kA, kB), times(0.5, kC))), "is no multiple of the sum"));
  CHECK(has(told(plus(times(0.5, plus(kA, kB)), kC)), "which was not set to zero, to x 1/2 of its own"));
  before.scalars = {{"norm", 4}, {"clip", 2}};
  CHECK(has(told(plus(plus(kA, kB), times(2, kC))), "has the gradient of the step before added"));
}

TEST_CASE("judges: stages of torch divide by the micro-batches behind backward, unless they are told not to") {
  const auto made = [](double divided, double by) {
    Made one;
    one.run.ranks = 1;
    for (int micro = 0; micro < 4; ++micro) one.micro(0, micro, "w", micro % 2 == 0 ? kA : kB);
    one.step.scalars = {{"accumulation", 4}, {"divided", divided}};
    one.step.tensors.at("grad/w") = matrix(times(2 / by, plus(kA, kB)));
    return one;
  };
  Made mean = made(4, 4), sum = made(1, 1), other = made(4, 2);
  CHECK(judged(mean, judge_gradients).held() == 1);
  CHECK(judged(mean, judge_gradients).notes().empty());
  const Tally meant = judged(sum, judge_gradients);
  CHECK(meant.broken() == 0);
  REQUIRE(meant.notes().size() == 1);
  CHECK(has(*meant.notes().begin(), "scale_grads=False, x 4"));
  CHECK(has(said(judged(other, judge_gradients)), "grad/w: x 2"));
}

TEST_CASE("judges: experts have the tokens of all shares, and summands of ranks are one share") {
  Made made;
  made.run.axes = {{"fsdp", 2}, {"ep", 2}};
  made.micro(0, 0, "expert", kA), made.micro(0, 0, "w", kB), made.micro(1, 0, "w", kC);
  made.step.tensors.at("grad/expert") = matrix(times(0.5, kA));
  made.step.tensors.at("grad/w") = matrix(times(0.5, plus(kB, kC)));
  CHECK(judged(made, judge_gradients).held() == 2);
  Made summed;
  summed.run.axes = {{"tp", 2}};
  summed.micro(0, 0, "norm", kA), summed.micro(2, 0, "norm", kB);  // rank 1 behind both ranks
  summed.step.tensors.at("grad/norm") = matrix(plus(kA, kB));
  CHECK(judged(summed, judge_gradients).held() == 1);
}

TEST_CASE("judges: a gradient that all ranks hold is divided by all of them, also where some did not use it") {
  const auto made = [](double factor) {
    Made one;
    for (int rank = 0; rank < 2; ++rank) one.step.ranks[rank], one.micro(rank, 0, "head", rank == 0 ? kA : kB);
    one.micro(0, 0, "left", kC), one.micro(1, 0, "right", kA);
    const std::map<std::string, Sketch> sums{{"head", plus(kA, kB)}, {"left", kC}, {"right", kA}};
    for (const auto& [name, sum] : sums) {
      one.step.tensors.at("grad/" + name) = matrix(times(factor / 2, sum));
      one.step.tensors.at("grad/" + name).copies = 1;
    }
    return one;
  };
  Made right = made(1), twice = made(2), alone = made(1);
  CHECK(judged(right, judge_gradients).held() == 3);
  CHECK(judged(right, judge_gradients).missing().empty());
  CHECK(judged(twice, judge_gradients).broken() == 3);
  alone.step.tensors.at("grad/left") = matrix(kC);  // of a stage that one rank has
  CHECK(judged(alone, judge_gradients).held() == 3);
}

TEST_CASE("judges: parameters inside and outside of a plan of tensor parallelism have shares of other sizes") {
  const auto made = [](double factor) {
    Made one;  // 2 data ranks x 2 tensor ranks
    one.run.ranks = 4, one.run.axes = {{"dp", 2}, {"tp", 2}};
    for (int rank = 0; rank < 4; ++rank)
      one.step.ranks[rank], one.micro(rank, 0, "outside", rank < 2 ? kA : kB);  // by its rank
    for (int by = 0; by < 2; ++by) {
      one.micro(by, 0, "inside", by == 0 ? kB : kC);
      one.step.locals.at({by, 0}).tensors.at("inside") = matrix(by == 0 ? kB : kC, {2 * by, 2 * by + 1});
    }
    one.micro(0, 0, "unused", kC);  // by one of the two data ranks
    one.step.locals.at({0, 0}).tensors.at("unused") = matrix(kC, {0, 1});
    const std::map<std::string, Sketch> sums{{"outside", plus(kA, kB)}, {"inside", plus(kB, kC)}, {"unused", kC}};
    for (const auto& [name, sum] : sums)
      one.step.tensors.at("grad/" + name) = matrix(times(factor / 2, sum), {0, 1, 2, 3});
    return one;
  };
  Made right = made(1), half = made(0.5);
  CHECK(judged(right, judge_gradients).held() == 3);
  CHECK(judged(right, judge_gradients).broken() == 0);
  for (const char* const name : {"grad/outside", "grad/unused"})
    half.step.tensors.at(name) = right.step.tensors.at(name);
  CHECK(has(said(judged(half, judge_gradients)), "grad/inside: x 1/2"));
}

TEST_CASE("judges: a micro-batch is named by the ranks that hold its gradient") {
  Made made;  // 2 data ranks x 2 tensor ranks
  made.run.ranks = 4, made.run.axes = {{"dp", 2}, {"tp", 2}};
  for (int rank = 0; rank < 4; ++rank) made.step.ranks[rank];
  for (int by = 0; by < 2; ++by) {
    made.micro(by, 0, "cut", by == 0 ? kA : kB);
    made.step.locals.at({by, 0}).tensors.at("cut") = matrix(by == 0 ? kA : kB, {2 * by, 2 * by + 1});
  }
  made.step.tensors.at("grad/cut") = matrix(times(0.5, plus(kA, times(2, kB))), {0, 1, 2, 3});
  CHECK(has(said(judged(made, judge_gradients)), "grad/cut: micro-batch 1 of ranks 2, 3 counts 2.00 times"));
}

TEST_CASE("judges: a parameter without gradients of micro-batches is named") {
  Made made;
  made.micro(0, 0, "w", kA);
  made.step.tensors.at("grad/w") = matrix(kA), made.step.tensors.at("grad/ignored") = matrix(kB);
  const Tally told = judged(made, judge_gradients);
  REQUIRE(told.missing().size() == 1);
  CHECK(has(*told.missing().begin(), "gradients of ignored were not recorded"));
}

TEST_CASE("judges: a part that is clipped by itself has a factor of its own, and none is above 1") {
  const auto told = [](double a, double b, double c, double clips) {
    Made made;
    made.run.ranks = 1;
    made.micro(0, 0, "a", kA), made.micro(0, 0, "b", kB), made.micro(0, 0, "c", kC);
    made.step.tensors.at("grad/a") = matrix(times(a, kA));
    made.step.tensors.at("grad/b") = matrix(times(b, kB));
    made.step.tensors.at("grad/c") = matrix(times(c, kC));
    made.step.scalars = {{"clips", clips}};
    const Tally tally = judged(made, judge_gradients);
    return tally.broken() > 0 ? said(tally) : tally.missing().empty() ? "holds" : *tally.missing().begin();
  };
  CHECK(told(1, 1, 1, 2) == "holds");
  CHECK(has(told(0.3, 0.7, 1, 2), "a part of the gradients was clipped"));
  CHECK(has(told(0.3, 0.7, 0.21, 2), "a part of the gradients was clipped"));
  CHECK(has(told(0.3, 0.7, 2, 2), "grad/c: x 2 of the mean"));
  CHECK(has(told(0.3, 0.7, 0.7, 1), "grad/a: x 0.4286 of the mean"));  // one clipping has one factor
}

TEST_CASE("judges: clipping by value leaves a smaller norm than the one that was told, and no larger one") {
  Made made;
  made.step.tensors.at("grad/w") = matrix(kA);
  const double size = std::sqrt(made.step.tensors.find("grad/w")->squares);
  made.step.scalars = {{"norm", 2 * size}, {"clip_value", 1}};
  CHECK(judged(made, judge_norm).broken() == 0);
  CHECK(judged(made, judge_norm).missing().size() == 1);
  made.step.scalars["norm"] = size;
  CHECK(judged(made, judge_norm).held() == 1);
  made.step.scalars["norm"] = size / 2;
  CHECK(judged(made, judge_norm).broken() == 1);
}

TEST_CASE("judges: a norm is that of all gradients, each once") {
  const auto made = [](double norm) {
    Made one;
    one.step.tensors.at("grad/a") = matrix(kA, {0});
    one.step.tensors.at("grad/b") = matrix(kB, {1});
    one.step.tensors.at("grad/c") = matrix(kC, {0});
    one.step.tensors.at("grad/c").copies = 1;
    one.step.scalars = {{"norm", norm}};
    return one;
  };
  Made parts = made(1);
  const auto square = [&](const char* name) { return parts.step.tensors.find(name)->squares; };
  const double a = square("grad/a"), b = square("grad/b"), c = square("grad/c");
  const auto told = [&](double norm) {
    Made one = made(norm);
    return said(judged(one, judge_norm));
  };
  CHECK(told(std::sqrt(a + b + c)) == "");
  CHECK(has(told(std::sqrt(a + b + 2 * c)), "c counts twice"));
  CHECK(has(told(std::sqrt(a + c)), "b is left out"));
  CHECK(has(told((std::sqrt(a + c) + std::sqrt(b + c)) / 2),
            "the mean of the ranks' norms, each with what it alone holds"));
  Made terms = made(1);
  terms.step.tensors.at("grad/a").summands = true;
  CHECK(judged(terms, judge_norm).broken() == 0);
  CHECK(judged(terms, judge_norm).missing().size() == 1);
}

TEST_CASE("judges: a gradient that is clipped by value has no element beyond the bound") {
  Made made;
  made.micro(0, 0, "w", kA), made.micro(0, 1, "w", kB);
  made.step.tensors.at("grad/w") = matrix(kC);
  made.step.tensors.at("grad/w").elements = {0.5, -1};
  made.step.scalars = {{"clip_value", 1}};
  CHECK(judged(made, judge_gradients).broken() == 0);
  CHECK(judged(made, judge_gradients).missing().size() == 1);
  made.step.scalars = {{"clip_value", 0.75}};
  CHECK(judged(made, judge_gradients).broken() == 1);
}

TEST_CASE("judges: ranks may reduce gradients in bfloat16") {
  Made made;
  made.micro(0, 0, "w", kA), made.micro(1, 0, "w", kB);
  Sketch mean = times(0.5, plus(kA, kB));
  for (std::size_t i = 0; i < mean.size(); ++i) mean[i] *= i % 2 == 0 ? 1.002 : 0.998;
  made.step.tensors.at("grad/w") = matrix(mean);
  CHECK(judged(made, judge_gradients).held() == 1);
  CHECK(judged(made, judge_gradients).notes().size() == 1);
  made.micro(0, 0, "v", kB), made.micro(1, 0, "v", kC);  // all gradients are rounded, or none is
  made.step.tensors.at("grad/v") = matrix(times(0.5, plus(kB, kC)));
  CHECK(has(said(judged(made, judge_gradients)), "grad/w: is no multiple"));
}

TEST_CASE("judges: ranks may reduce gradients in a 16-bit type, and clip them then") {
  const auto told = [](const std::string& type, double clip, double off) {
    Made made;
    made.micro(0, 0, "w", kA), made.micro(1, 0, "w", kB);
    made.micro(0, 0, "v", kB), made.micro(1, 0, "v", kC);  // whose elements are not known
    made.step.tensors.at("grad/v") = matrix(times(clip / 2 * (1 + half_unit(type) / 2), plus(kB, kC)));
    Sketch mean = times(clip / 2, plus(kA, kB));
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] *= 1 + (i % 2 == 0 ? 0.7 : -0.7) * half_unit(type);
    Tensor& gradient = made.step.tensors.at("grad/w") = matrix(mean);
    for (const double x : {0.1, 0.2, -0.3, 0.7}) gradient.elements.push_back(rounded_to(x, type) * clip * (1 + off));
    if (clip < 1) made.step.scalars = {{"norm", 1 / clip - 1e-6}, {"clip", 1}};
    const Tally tally = judged(made, judge_gradients);
    return tally.broken() > 0 ? said(tally) : tally.notes().empty() ? "" : *tally.notes().begin();
  };
  CHECK(has(told("F16", 1, 0), "rounding to float16 leaves"));
  CHECK(has(told("F16", 0.3, 0), "rounding to float16 leaves"));
  CHECK(has(told("BF16", 0.3, 0), "rounding to bfloat16 leaves"));
  CHECK(has(told("F16", 1, 1e-4), "grad/w: is no multiple of the sum"));
}

TEST_CASE("judges: the norm of a large tensor has the rounding of its sum") {
  Made made;
  Tensor& gradient = made.step.tensors.at("grad/w") = matrix(kA);
  made.step.scalars = {{"norm", 1.0002 * std::sqrt(gradient.squares)}};
  CHECK(judged(made, judge_norm).broken() == 1);
  gradient.total = 1 << 22;
  CHECK(judged(made, judge_norm).held() == 1);
}

TEST_CASE("judges: a norm is finite, and the bound of clipping need not be") {
  Made made;
  made.step.ranks[0].scalars = {{"norm", {4}}, {"clip", {INFINITY}}};
  CHECK(judged(made, judge_finite).broken() == 0);
  made.step.ranks[0].scalars["norm"] = {INFINITY};
  CHECK(has(said(judged(made, judge_finite)), "norm of rank 0: is inf"));
}

}  // namespace zs::probe
