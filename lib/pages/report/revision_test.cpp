// SPDX-License-Identifier: Apache-2.0
#include "report/pages.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "base/error.hpp"
#include "plot/sample_test.hpp"
#include "stat/summary.hpp"
#include "summary/condition.hpp"
#include "summary/ratio.hpp"

namespace zs::report {
namespace {

/// Means of `count` runs around 0.5 s with the relative noise that runs of a quiet machine show.
stat::Sample runs(std::mt19937& random, std::size_t count, double factor) {
  std::normal_distribution<double> noise(0, 0.01);
  stat::Sample result;
  for (std::size_t i = 0; i < count; ++i) result.push_back(0.5 * factor * std::exp(noise(random)));
  return result;
}

/// Two revisions, `count` runs each; those of the second take `factor` the time and use `seed` for their losses.
metric::Store revisions(std::size_t count, double factor, bool same_losses, bool digests) {
  metric::Store store;
  std::mt19937 random(5);
  std::normal_distribution<double> noise(0, 0.004);
  for (std::size_t i = 0; i < 2 * count; ++i) {
    const bool second = i % 4 == 1 || i % 4 == 2;  // A B B A
    plot::Sample sample;
    sample.steps = 40;
    sample.digests = digests;
    sample.identical = same_losses || !second;
    metric::Run run = plot::sample_run("z1_baseline", second ? 1 : 0, sample, 40);
    run.name = (second ? "new_run" : "old_run") + std::to_string(i);
    run.attributes["revision"] = second ? "new" : "old";
    const double speed = (second ? factor : 1) * std::exp(noise(random));
    for (double& time : run.records.find("iteration_time")->reals()) time *= speed;
    store.runs.push_back(std::move(run));
  }
  stat::SummaryRule rule;
  rule.by = {"revision"};
  return stat::summarize(std::move(store), rule).store;
}

Document revision_report(const metric::Store& store, const Gate& gate = {}) {
  const Findings found = findings(store, "s.h5");
  return revision(store, found, "s.h5", "", gate);
}
bool says(const Document& document, const std::string& words) {
  return document.verdict_text.plain().find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("the same revision twice is called different in at most one case of twenty, a slowdown of 3 % is found") {
  std::mt19937 random(1);
  int alarms = 0, found = 0;
  constexpr int kTrials = 400;
  for (int trial = 0; trial < kTrials; ++trial) {
    // Time and memory are judged together: a false alarm in either counts.
    const auto same =
        summary::holm({{runs(random, 10, 1), runs(random, 10, 1)}, {runs(random, 10, 1), runs(random, 10, 1)}});
    alarms += same[0].differs() || same[1].differs();
    const auto slow =
        summary::holm({{runs(random, 10, 1), runs(random, 10, 1.03)}, {runs(random, 10, 1), runs(random, 10, 1)}});
    found += slow[0].low > 1;
  }
  CHECK(alarms <= kTrials / 20 + 9);  // 5 %, and two standard deviations of that count
  CHECK(found >= kTrials * 9 / 10);
}

TEST_CASE("values without any spread are compared exactly, single runs not at all") {
  const summary::Ratio exact = summary::ratio({{100, 100}, {103, 103}});
  CHECK(exact.exact);
  CHECK(exact.value == 1.03);
  CHECK(exact.differs());
  CHECK_FALSE(summary::ratio({{100}, {103}}).known());
  CHECK(std::isnan(summary::ratio({{}, {1}}).value));
  CHECK(std::isnan(summary::ratio({{0, 1}, {1, 1}}).value));
}

TEST_CASE("printed values differ by more than their print only") {
  const double unit = 0.01, rounding = unit / std::sqrt(12);
  const auto printed = [&](const stat::Sample& a, const stat::Sample& b, bool paired) {
    return summary::ratio({a, b, paired, unit, rounding});
  };
  const summary::Ratio one = printed({0.12, 0.12}, {0.13, 0.13}, false);
  CHECK_FALSE(one.differs());
  CHECK(one.p == 1);
  CHECK(one.coarse == doctest::Approx(unit / 0.12));
  CHECK(one.high == doctest::Approx(0.135 / 0.115).epsilon(1e-4));
  CHECK(printed({0.12, 0.12}, {0.14, 0.14}, false).differs());
  // Pairs that differ by the same printed amount, and runs of which one side has no spread.
  CHECK_FALSE(printed({0.12, 0.13}, {0.13, 0.14}, true).differs());
  CHECK_FALSE(printed({0.12, 0.12, 0.12}, {0.13, 0.13, 0.12}, true).differs());
  CHECK(printed({0.12, 0.12, 0.13}, {0.14, 0.14, 0.14}, false).differs());
}

TEST_CASE("runs are too few only where fewer than the usual six were taken") {
  CHECK(summary::ratio({{1, 3}, {2, 4}}).too_few());
  const summary::Ratio six = summary::ratio({{1, 3, 1, 3, 1, 3}, {2, 5, 1, 4, 1, 6}});
  CHECK(six.smallest > 0.5);
  CHECK_FALSE(six.too_few());
  metric::Store store = revisions(6, 1, true, true);
  double noise = 1;
  for (metric::Run& run : store.runs) {
    for (double& time : run.records.find("iteration_time")->reals()) time *= noise;
    noise = noise == 1 ? 4 : 1;
  }
  stat::SummaryRule rule;
  rule.by = {"revision"};
  const Document document = revision_report(stat::summarize({std::move(store.runs), {}, {}, {}, {}}, rule).store);
  CHECK(says(document, "; the smallest change that so many runs find is "));
  CHECK_FALSE(says(document, "too few"));
}

TEST_CASE("the same bits and the same speed are good") {
  const Document document = revision_report(revisions(6, 1, true, true));
  CHECK(document.verdict == Verdict::good);
  CHECK(document.label == "Same or better");
  CHECK(says(document, "new against old: identical bits (state digest "));
  CHECK(says(document, "Memory: no change shown") == false);
  CHECK(says(document, "the same in every run"));
}

TEST_CASE("a slowdown beyond the gate is bad, and a wider gate lets it pass") {
  const metric::Store store = revisions(6, 1.1, true, true);
  CHECK(revision_report(store).verdict == Verdict::bad);
  CHECK(says(revision_report(store), "slower, beyond the 3 % allowed"));
  CHECK(revision_report(store, {"", 0.2}).verdict == Verdict::good);
}

TEST_CASE("with one run each the time is inconclusive") {
  const Document document = revision_report(revisions(1, 1.1, true, true));
  CHECK(document.verdict == Verdict::open);
  CHECK(document.label == "Inconclusive");
  CHECK(says(document, "no interval, so nothing is shown"));
}

TEST_CASE("other losses are bad with the step, also by one unit in the last place") {
  CHECK(says(revision_report(revisions(3, 1, false, false)), "different from step 1"));
  metric::Store raw = revisions(3, 1, true, false);
  for (metric::Run& run : raw.runs) {
    double& loss = run.records.find("loss")->reals()[19];
    if (run.attribute("revision") == "new") loss = std::nextafter(loss, 9);
  }
  stat::SummaryRule rule;
  rule.by = {"revision"};
  const Document document = revision_report(stat::summarize(std::move(raw), rule).store);
  CHECK(document.verdict == Verdict::bad);
  CHECK(says(document, "different from step 20"));
}

TEST_CASE("one condition cannot be compared, and an unknown baseline is named") {
  metric::Store store = revisions(2, 1, true, true);
  CHECK_THROWS_WITH_AS(revision_report(store, {"odl", 0.03}),
                       "no condition 'odl' to be the baseline, did you mean 'old'?", UsageError);
  store.summary = {};
  for (metric::Run& run : store.runs) run.attributes["revision"] = "old";
  stat::SummaryRule rule;
  rule.by = {"revision"};
  CHECK_THROWS_WITH_AS(revision_report(stat::summarize(std::move(store), rule).store),
                       "s.h5: a comparison of revisions needs two conditions (zs-aggregate --by revision)", Error);
}

}  // namespace zs::report
