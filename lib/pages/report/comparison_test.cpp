// SPDX-License-Identifier: Apache-2.0
// How often a comparison is wrong: simulated runs in the order A B B A, with the noise of a real machine.
#include "report/comparison.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <random>

#include "plot/sample_test.hpp"
#include "stat/divergence.hpp"
#include "stat/summary.hpp"

namespace zs::report {
namespace {

constexpr int kTrials = 200;
constexpr int kAllowed = kTrials / 20;  // 5 %
constexpr std::size_t kSteps = 95;      // of a run of 100, without 5 of warm-up

/// Relative noise, as measured over consecutive runs of 100 steps of the model `tiny` on 2 ranks.
struct Noise {
  double between;      ///< of the mean time from one run to the next
  double within;       ///< of a step around the mean of its run
  double correlation;  ///< of a step with the one before
  double burst_share;  ///< runs that other work falls on ...
  double burst;        ///< ... and how much longer it makes them, on average
  double shift_share;  ///< runs at which the whole machine becomes faster or slower, for the runs after it too ...
  double shift;        ///< ... and by how much
};
/// A machine of 2 processors with nothing else to do: means of 31.81 32.06 31.73 31.51 31.71 ms.
constexpr Noise kQuiet = {0.006, 0.03, 0.2, 0, 0, 0, 0};
/// The same while others compile on it: 31.81 32.06 31.73 38.26 31.51 31.71 46.08 52.01 48.82 37.05 44.16 40.11 35.82
/// ... 26.81 19.73 28.62 36.91 35.80 37.97 ms.
constexpr Noise kBusy = {0.01, 0.15, 0.45, 0.25, 0.2, 0.1, 0.25};

/// Runs one after another on one machine.
class Machine {
 public:
  Machine(const Noise& noise, std::mt19937& random) : noise_(noise), random_(random) {}

  /// The mean time of the next run, in seconds, of a program that takes `factor` times as long.
  double run(double factor) {
    if (chance(noise_.shift_share)) level_ = noise_.shift * normal_(random_);
    double of_run = level_ + noise_.between * normal_(random_);
    if (chance(noise_.burst_share)) of_run -= noise_.burst * std::log(1 - uniform_(random_));
    stat::Sample steps;
    const double fresh = std::sqrt(1 - noise_.correlation * noise_.correlation);
    for (std::size_t i = 0; i < kSteps; ++i) {
      step_ = noise_.correlation * step_ + fresh * normal_(random_);
      steps.push_back(0.0317 * factor * std::exp(of_run + noise_.within * step_));
    }
    return stat::mean(steps);
  }

 private:
  bool chance(double share) { return uniform_(random_) < share; }

  const Noise& noise_;
  std::mt19937& random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  double level_ = 0, step_ = 0;
};

/// Of kTrials comparisons of `count` runs each, how many call the time different, where it is `factor` times as long.
int called_different(const Noise& noise, std::size_t count, double factor) {
  std::mt19937 random(static_cast<unsigned>(count));
  int called = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    Machine machine(noise, random);
    summary::Samples times{{}, {}, true};
    for (std::size_t k = 0; k < count; ++k) {
      const bool first = k % 2 == 0;
      (first ? times.baseline : times.other).push_back(machine.run(first ? 1 : factor));
      (first ? times.other : times.baseline).push_back(machine.run(first ? factor : 1));
    }
    const stat::Sample peaks(count, 27036680);
    const summary::Ratio ratio = summary::holm({times, {peaks, peaks, true}})[0];
    called += factor == 1 ? ratio.differs() : ratio.low > 1;
  }
  return called;
}

summary::Ratios ratios_of(metric::Store store) {
  stat::SummaryRule rule;
  rule.by = {"revision"};
  const metric::Store summary = stat::summarize(std::move(store), rule).store;
  const std::vector<summary::Condition> conditions = summary::conditions(summary, "s.h5");
  return summary::ratios(conditions.at(0), conditions.at(1));
}

/// `count` runs each of two revisions whose losses are equal; `digests` says whether they end with one.
metric::Store twins(std::size_t count, bool digests) {
  metric::Store store;
  for (std::size_t i = 0; i < 2 * count; ++i) {
    const bool second = i % 4 == 1 || i % 4 == 2;  // A B B A
    plot::Sample sample;
    sample.steps = 12;
    sample.digests = digests;
    metric::Run run = plot::sample_run("z1_baseline", 0, sample, 12);
    run.name = "run" + std::to_string(i);
    run.attributes["revision"] = second ? "new" : "old";
    run.attributes["run"] = std::to_string(i / 2);
    store.runs.push_back(std::move(run));
  }
  return store;
}

Numerics numerics_of(metric::Store store) {
  stat::SummaryRule rule;
  rule.by = {"revision"};
  const metric::Store summary = stat::summarize(std::move(store), rule).store;
  const Findings found = findings(summary, "s.h5");
  return compare(summary, found, "s.h5", {}).others.at(0).numerics;
}

}  // namespace

TEST_CASE("the same revision twice is called different in time in at most one of twenty comparisons") {
  for (const std::size_t count : {2, 3, 4, 5, 6, 8, 10, 20}) {
    CAPTURE(count);
    CHECK(called_different(kQuiet, count, 1) <= kAllowed);
    CHECK(called_different(kBusy, count, 1) <= kAllowed);
  }
}

TEST_CASE("a slowdown of 3 % is found in nine of ten comparisons of 10 runs, and with the usual 6 too") {
  CHECK(called_different(kQuiet, 10, 1.03) >= kTrials * 9 / 10);
  CHECK(called_different(kQuiet, 6, 1.03) >= kTrials * 9 / 10);
}

TEST_CASE("what other work does to single runs does not hide a slowdown of 15 % in 20 runs") {
  CHECK(called_different(kBusy, 20, 1.15) >= kTrials * 9 / 10);
}

TEST_CASE("times that are printed coarser than they vary make no difference") {
  for (const bool paired : {false, true}) {
    for (const int timed : {1, 5}) {
      std::mt19937 random(4);
      std::normal_distribution<double> seconds(0.125, 0.003);
      int called = 0;
      for (int trial = 0; trial < kTrials; ++trial) {
        metric::Store store = twins(2, false);
        for (metric::Run& run : store.runs) {
          if (!paired) run.attributes.erase("run");
          std::vector<double>& times = run.records.find("iteration_time")->reals();
          for (std::size_t i = 0; i < times.size(); ++i)
            times[i] = i < 5 + static_cast<std::size_t>(timed) ? std::round(100 * seconds(random)) / 100
                                                               : metric::absent_real();
        }
        called += ratios_of(std::move(store)).time.differs();
      }
      CAPTURE(paired);
      CAPTURE(timed);
      CHECK(called <= kAllowed);
    }
  }
}

TEST_CASE("memory of one printed unit apart is no difference, of two it is one; of bytes one byte is") {
  const auto memory = [](std::int64_t old_bytes, std::int64_t new_bytes) {
    metric::Store store = twins(6, false);
    for (metric::Run& run : store.runs) {
      std::vector<std::int64_t>& bytes = run.records.find("peak_mem")->integers();
      bytes.assign(bytes.size(), run.attribute("revision") == "new" ? new_bytes : old_bytes);
    }
    return ratios_of(std::move(store)).memory;
  };
  const auto gibibytes = [](double printed) { return std::llround(printed * 0x1p30); };
  CHECK_FALSE(memory(gibibytes(0.04), gibibytes(0.05)).differs());
  CHECK(memory(gibibytes(0.04), gibibytes(0.05)).coarse == doctest::Approx(0.25));
  CHECK(memory(gibibytes(0.04), gibibytes(0.06)).differs());
  CHECK_FALSE(memory(1'000'000'000, 1'100'000'000).differs());
  CHECK(memory(1'000'000'000, 2'000'000'000).differs());
  CHECK(memory(27036680, 27036681).differs());
}

TEST_CASE("of several logs of one run the slowest and the largest count, whatever their order") {
  for (const bool first : {true, false}) {
    metric::Store store;
    for (const metric::Run& run : twins(3, false).runs) {
      metric::Run slow = run;
      slow.name += "_slow";
      if (slow.attribute("revision") == "new") {
        for (double& time : slow.records.find("iteration_time")->reals()) time *= 2;
        for (std::int64_t& bytes : slow.records.find("peak_mem")->integers()) bytes *= 3;
      }
      store.runs.push_back(first ? slow : run);
      store.runs.push_back(first ? run : slow);
    }
    const summary::Ratios found = ratios_of(std::move(store));
    CHECK(found.pairs == 3);
    CHECK(found.time.value == doctest::Approx(2));
    CHECK(found.memory.value == doctest::Approx(3));
  }
}

TEST_CASE("a difference of one unit in the last place is always found") {
  std::mt19937 random(1);
  for (int trial = 0; trial < kTrials; ++trial) {
    const std::size_t count = 1 + random() % 6, step = random() % 12;
    metric::Store store = twins(count, false);
    for (metric::Run& run : store.runs) {
      std::vector<double>& losses = run.records.find("loss")->reals();
      // Any magnitude and mantissa, the same in all runs.
      losses[step] = std::ldexp(1 + static_cast<double>(random() % 1000003) / 1000003, trial % 7 - 3);
    }
    const double loss = store.runs[0].records.find("loss")->reals()[step];
    for (metric::Run& run : store.runs) {
      double& mine = run.records.find("loss")->reals()[step];
      mine = run.attribute("revision") == "new" ? std::nextafter(loss, trial % 2 ? 9 : 0) : loss;
    }
    const Numerics found = numerics_of(std::move(store));
    CAPTURE(trial);
    CHECK(found.verdict == Verdict::bad);
    CHECK(found.found == "different");
    CHECK(found.from_step == static_cast<std::int64_t>(step) + 1);
  }
}

TEST_CASE("a difference that only the state digest shows is found, and none is found where there is none") {
  for (std::size_t count = 1; count < 8; ++count) {
    metric::Store store = twins(count, true);
    CHECK(numerics_of(store).found == "identical bits");
    CHECK(numerics_of(twins(count, false)).found == "identical losses");
    for (metric::Run& run : store.runs) {
      if (run.attribute("revision") == "new") run.attributes["state_digest"].front() ^= 1;
    }
    const Numerics found = numerics_of(std::move(store));
    CHECK(found.found == "different");
    CHECK(found.verdict == Verdict::bad);
  }
}

TEST_CASE("a revision whose own runs vary is excused only where the baseline's vary too") {
  const auto varied = [](bool old_too) {
    metric::Store store = twins(4, false);
    double far = 0;
    for (metric::Run& run : store.runs) {
      far = 2 * far + 0.001;
      if (old_too || run.attribute("revision") == "new") run.records.find("loss")->reals()[7] += far;
    }
    return numerics_of(std::move(store));
  };
  CHECK(varied(true).found == "within the envelope");
  CHECK(varied(true).verdict == Verdict::good);
  CHECK(varied(false).found == "different");
  CHECK(varied(false).from_step == 8);
  CHECK(varied(false).text.plain().find("those of repeated runs of old do not differ at all") != std::string::npos);
}

TEST_CASE("runs with equal seeds that end with other bits are different, however far seeds are apart") {
  metric::Store store = twins(3, false);
  std::map<std::string, int> seen;
  for (metric::Run& run : store.runs) {
    const int seed = ++seen[run.attribute("revision")];
    run.attributes["seed"] = std::to_string(seed);
    run.attributes["state_digest"] = (run.attribute("revision") == "new" ? "b" : "a") + std::to_string(seed);
    for (double& loss : run.records.find("loss")->reals()) loss += seed;
  }
  CHECK(numerics_of(store).found == "different");  // the losses are equal
  for (metric::Run& run : store.runs) {
    double& loss = run.records.find("loss")->reals()[7];
    if (run.attribute("revision") == "new") loss += 0.001 * std::stod(run.attribute("seed"));
  }
  const Numerics found = numerics_of(store);
  CHECK(found.verdict == Verdict::bad);
  CHECK(found.from_step == 8);
  CHECK(
      found.text.plain().starts_with("different bits of runs that train the same thing: losses differ by up to 0.002"));
  // With one seed that ends in two ways before the change, digests tell nothing.
  store.runs.push_back(store.runs.front());
  store.runs.back().name += "-again", store.runs.back().attributes["state_digest"] = "another";
  CHECK(numerics_of(std::move(store)).found == "within the envelope");
}

TEST_CASE("where the mean losses are equal, what differs is named, and no loss") {
  // Each revision's runs repeat the same two losses: the means are equal, single runs are not.
  metric::Store store = twins(2, false);
  std::map<std::string, int> seen;
  for (metric::Run& run : store.runs) {
    double& loss = run.records.find("loss")->reals()[7];
    loss = 2 + 0.5 * seen[run.attribute("revision")]++;
  }
  Numerics found = numerics_of(std::move(store));
  CHECK(found.text.plain() ==
        "within the envelope of repeated runs: losses of single runs differ, their means do not, from step 8");
  store = twins(1, false);
  for (metric::Run& run : store.runs) {
    std::vector<double>& norms = run.records.column("grad_norm").reals();
    norms.assign(run.records.rows(), 1);
    if (run.attribute("revision") == "new") norms[4] = 2;
  }
  found = numerics_of(std::move(store));
  CHECK(found.text.plain() == "different from step 5: losses are equal, grad_norm differs");
}

TEST_CASE("a failed baseline leaves the comparison open, a failed other is bad") {
  for (const char* failing : {"old", "new", "both"}) {
    metric::Store store = twins(2, true);
    for (metric::Run& run : store.runs) {
      if (run.attribute("revision") == failing || std::string(failing) == "both") run.attributes["exit_code"] = "1";
    }
    stat::SummaryRule rule;
    rule.by = {"revision"};
    const metric::Store summary = stat::summarize(std::move(store), rule).store;
    const Findings found = findings(summary, "s.h5");
    CHECK(compare(summary, found, "s.h5", {}).verdict ==
          (std::string(failing) == "new" ? Verdict::bad : Verdict::open));
  }
}

}  // namespace zs::report
