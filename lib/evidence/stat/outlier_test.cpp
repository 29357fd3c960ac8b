// SPDX-License-Identifier: Apache-2.0
#include "stat/outlier.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <random>

#include "metric/file.hpp"
#include "stat/alike.hpp"
#include "stat/summary.hpp"

namespace zs::stat {
namespace {

/// A normal value, the same on every machine.
double normal(std::mt19937_64& generator) {
  const auto uniform = [&] { return (static_cast<double>(generator() >> 11) + 0.5) / 9007199254740992.0; };
  const double radius = std::sqrt(-2 * std::log(uniform()));
  return radius * std::cos(6.283185307179586 * uniform());
}

std::string number(int value) { return std::string(value < 10 ? "0" : "") + std::to_string(value); }

/// Runs r00 .. of 12 steps with a time of about 0.5 s and a loss of about 2; `time` and `loss` change those of a run.
std::string records(int runs, const std::function<double(int)>& time, const std::function<double(int)>& loss,
                    const std::string& attributes = "model.name=m") {
  std::mt19937_64 chance(3);
  std::string head = "#zs-metrics 1\n", rows = "run\tstep\tloss\titeration_time\n";
  for (int run = 0; run < runs; ++run) {
    const std::string name = "r" + number(run);
    head += "#@ " + name + " " + attributes + "\n#@ " + name + " seed=" + std::to_string(run) + "\n";
    for (int step = 1; step <= 12; ++step)
      rows += name + "\t" + std::to_string(step) + "\t" + std::to_string(loss(run) * (1 + 0.001 * normal(chance))) +
              "\t" + std::to_string(0.5 * time(run) * (1 + 0.01 * normal(chance))) + "\n";
  }
  return head + rows;
}

std::vector<std::string> found(const std::string& text) {
  return outlier_sentences(summarize(metric::parse(text, "test"), {}).store);
}

}  // namespace

TEST_CASE("outliers: planted ones are all found and named together, and nothing else is") {
  const auto time = [](int run) { return run >= 20 && run < 25 ? 1.3 : 1.0; };
  const auto loss = [](int run) { return run == 3 || run == 7 ? 2.2 : 2.0; };
  const std::vector<std::string> sentences = found(records(60, time, loss));
  REQUIRE(sentences.size() == 2);
  CHECK(sentences[0].starts_with("r20 to r24 are "));
  CHECK(sentences[0].ends_with("% slower than the 55 runs like them"));
  CHECK(sentences[1].starts_with("r03 and r07 have "));
  CHECK(sentences[1].ends_with("% higher loss than the 58 runs like them"));
}

TEST_CASE("outliers: what is better is named last, and one run is 'it'") {
  const auto time = [](int run) { return run == 5 ? 0.5 : run == 9 ? 2.0 : 1.0; };
  const std::vector<std::string> sentences = found(records(30, time, [](int) { return 2.0; }));
  REQUIRE(sentences.size() == 2);
  CHECK(sentences[0].find("slower than the 28 runs like it") != std::string::npos);
  CHECK(sentences[1].find("r05 is 50 % faster than the 28 runs like it") != std::string::npos);
}

TEST_CASE("outliers: few runs, unlike ones and failed ones are held against nobody") {
  const auto slow = [](int run) { return run == 3 ? 2.0 : 1.0; };
  const auto same = [](int) { return 2.0; };
  CHECK(found(records(static_cast<int>(kFewestAlike) - 1, slow, same)).empty());
  CHECK(found(records(20, slow, same)).size() == 1);
  std::string other = records(20, slow, same);
  other.insert(other.find("run\tstep"), "#@ r03 model.num_layers=9\n");
  CHECK(found(other).empty());
  std::string failed = records(20, slow, same);
  failed.insert(failed.find("run\tstep"), "#@ r03 exit_code=9\n");
  CHECK(found(failed).empty());
}

TEST_CASE("outliers: no healthy group of 1,000 has one, normal or with rounded values") {
  std::mt19937_64 chance(1);
  int outside = 0, rounded = 0;
  for (int group = 0; group < 1000; ++group) {
    Sample values, printed;
    for (std::size_t size = kFewestAlike + static_cast<std::size_t>(chance() % 190); values.size() < size;) {
      values.push_back(100 + 10 * normal(chance));
      printed.push_back(std::round(2 * values.back() / 100) / 2);
    }
    const Fence usual = fence(values, 0), coarse = fence(printed, 0.51);
    for (const double value : values) outside += usual.outside(value);
    for (const double value : printed) rounded += coarse.outside(value);
  }
  CHECK(outside == 0);
  CHECK(rounded == 0);
}

TEST_CASE("outliers: the fence finds what is far out at every size, and knows nothing of few") {
  std::mt19937_64 chance(2);
  for (const std::size_t size : {20U, 50U, 200U, 1000U}) {
    Sample values(size / 10, 200.0);
    while (values.size() < size) values.push_back(100 + normal(chance));
    const Fence usual = fence(values, 0.05);
    CHECK(usual.outside(200));
    CHECK_FALSE(usual.outside(103));
  }
  CHECK(std::isnan(fence(Sample(kFewestAlike - 1, 1.0), 0.05).median));
  const Fence equal = fence(Sample(20, 4.0), 0.05);  // no spread: the least change alone
  CHECK_FALSE(equal.outside(4.2));
  CHECK(equal.outside(4.21));
}

TEST_CASE("alike: names and seeds part nothing, settings do, and silent runs go by stem and columns") {
  const metric::Store store = metric::parse(
      "#zs-metrics 1\n#@ a model.name=m\n#@ a nickname=x\n#@ a seed=1\n#@ b model.name=m\n#@ b nickname=y\n#@ b "
      "seed=2\n"
      "#@ c model.name=m\n#@ c nickname=z\n#@ d model.name=n\n#@ d nickname=w\n"
      "run\tstep\tloss\na\t1\t1\nb\t1\t1\nc\t1\t1\nd\t1\t1\nq_1\t1\t1\nq_22\t1\t1\ns_1\t1\t1\n",
      "test");
  std::vector<const metric::Run*> runs;
  for (const metric::Run& run : store.runs) runs.push_back(&run);
  const std::vector<Alike> groups = alike(runs);
  REQUIRE(groups.size() == 4);
  CHECK(groups[0].runs.size() == 3);
  CHECK(groups[0].label == "a and 2 more");
  CHECK(groups[2].label == "q_*");
  CHECK(groups[3].label == "s_1");
}

TEST_CASE("alike: ranges of names") {
  CHECK(ranges({"a_07", "a_08", "a_09", "a_10", "b", "c_1"}) == "a_07 to a_10, b and c_1");
  CHECK(ranges({"a1", "a2"}) == "a1 and a2");
  CHECK(ranges({"a", "c", "e", "g"}, 3) == "a, c and 2 more");
  CHECK(ranges({"z1_x", "z2_x", "z3_x"}) == "z1_x to z3_x");
}

}  // namespace zs::stat
