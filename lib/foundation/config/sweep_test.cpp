// SPDX-License-Identifier: Apache-2.0
#include "config/sweep.hpp"

#include <doctest/doctest.h>

#include <set>

#include "base/error.hpp"
#include "base/number.hpp"

namespace zs::config {
namespace {

std::vector<std::string> texts(const std::string& yaml) {
  std::vector<std::string> runs;
  for (const auto& entries : expand(parse_sweep(yaml, "s.yaml"))) {
    std::string text;
    for (const Entry& entry : entries) text += (text.empty() ? "" : " ") + entry.value;
    runs.push_back(text);
  }
  return runs;
}

std::string error_of(const std::string& yaml) {
  try {
    texts(yaml);
  } catch (const zs::Error& error) {
    return error.what();
  }
  return "no error";
}

const std::string kTwoByThree = "parameters:\n  a.x: {values: [1, 2]}\n  a:\n    y: {values: [p, q, 'r s']}\n";

}  // namespace

TEST_CASE("sweep: a grid is the full product, the last parameter varying fastest") {
  CHECK(texts("sweep_name: s\n" + kTwoByThree) ==
        std::vector<std::string>{"1 p", "1 q", "1 r s", "2 p", "2 q", "2 r s"});
  CHECK(texts("sweep_name: s\nparameters: {n: {min: 2, max: 4, distribution: int}, z: {value: 0}}\n") ==
        std::vector<std::string>{"2 0", "3 0", "4 0"});
}

TEST_CASE(
    "sweep: a random draw repeats nothing, is the same for the same seed, and its beginning does not depend on its "
    "length") {
  const std::string head = "sweep_name: s\nstrategy: random\n" + kTwoByThree;
  const auto three = texts(head + "num_runs: 3\nseed: 7\n"), six = texts(head + "num_runs: 6\nseed: 7\n");
  CHECK(three == texts(head + "num_runs: 3\nseed: 7\n"));
  CHECK(std::set(six.begin(), six.end()).size() == 6);
  CHECK(std::equal(three.begin(), three.end(), six.begin()));
  bool other = false;
  for (int seed = 8; seed < 12; ++seed)
    other = other || texts(head + "num_runs: 6\nseed: " + std::to_string(seed) + "\n") != six;
  CHECK(other);
  const Sweep more = parse_sweep(head + "num_runs: 7\nseed: 7\n", "s.yaml");
  CHECK(more.warnings ==
        std::vector<std::string>{"s.yaml:7: num_runs is 7, the parameters have only 6 combinations: all "
                                 "of them are taken"});
  CHECK(run_count(more) == 6);
  CHECK(texts(head + "num_runs: 7\nseed: 7\n") == six);
}

TEST_CASE("sweep: ranges are drawn within their bounds, in six digits, log_uniform evenly over the magnitudes") {
  const auto draws = texts(
      "sweep_name: s\nstrategy: random\nnum_runs: 4000\nparameters: {x: {min: 1e-4, max: 1, distribution: "
      "log_uniform}}\n");
  int below = 0;
  for (const std::string& text : draws) {
    const double x = *zs::parse_real(text);
    CHECK((x >= 1e-4 && x <= 1));
    CHECK(text.size() <= 11);
    below += x < 1e-2;
  }
  CHECK(below > 1850);
  CHECK(below < 2150);
  int low = 0;
  for (const std::string& text :
       texts("sweep_name: s\nstrategy: random\nnum_runs: 4000\nparameters: {x: {min: -1, max: 3}}\n"))
    low += *zs::parse_real(text) < 0;
  CHECK(low > 880);
  CHECK(low < 1120);
}

TEST_CASE("sweep: W&B's and Hydra's are read") {
  const std::string wandb =
      "program: train.py\nmethod: random\nrun_cap: 4\nmetric: {name: loss}\nparameters:\n"
      "  layers: {min: 1, max: 3}\n  lr: {distribution: log_uniform_values, min: 1e-4, max: 1e-2}\n"
      "  opt: {parameters: {name: {distribution: categorical, values: [adam, sgd]}}}\n";
  const Sweep sweep = parse_sweep(wandb, "s.yaml");
  CHECK(sweep.run == "python3 train.py {options}");
  CHECK((sweep.random && sweep.num_runs == 4));
  REQUIRE(sweep.parameters.size() == 3);
  CHECK(sweep.parameters[0].distribution == Distribution::integer);
  CHECK(sweep.parameters[1].distribution == Distribution::log_uniform);
  CHECK(sweep.parameters[1].lowest == 1e-4);
  const Sweep powers = parse_sweep(
      "program: train.py\nmethod: random\nrun_cap: 4\nparameters: {lr: {distribution: log_uniform, min: -9, max: "
      "-2}}\n",
      "s.yaml");
  CHECK(powers.parameters[0].lowest == doctest::Approx(0.0001234098));
  CHECK(powers.parameters[0].highest == doctest::Approx(0.1353352832));
  CHECK(sweep.parameters[2].key == "opt.name");
  CHECK(sweep.warnings == std::vector<std::string>{"s.yaml:4: W&B's 'metric' has no effect here"});
  CHECK(error_of("method: bayes\nparameters: {x: {values: [1]}}\n").find("zs-sweep takes grid and random") !=
        std::string::npos);
  CHECK(error_of("program: x\nparameters: {x: {values: [1]}}\n").find("unknown key 'program'") != std::string::npos);
  const std::string hydra = "lr: 0.1\nhydra:\n  overrides:\n    task: ['+lr=0.1,0.01', seed=1]\n";
  const Sweep swept = parse_sweep(hydra, "s.yaml", "train.py {options}");
  REQUIRE(swept.parameters.size() == 2);
  CHECK((swept.parameters[0].key == "lr" && swept.parameters[0].values.size() == 2));
  CHECK(error_of(hydra).find("--run") != std::string::npos);
}

TEST_CASE("sweep: what it cannot mean is located") {
  const std::string head = "sweep_name: s\n";
  CHECK(error_of("parameters: {x: [1, 1]}\n").ends_with("two runs would be the same"));
  CHECK(error_of(head) == "s.yaml: has no parameters");
  CHECK(error_of("learning_rate: [1e-4, 1e-4]\n")
            .ends_with("training.learning_rate: '1e-4' is given twice: two runs would be the same"));
  CHECK(error_of(head + "strategy: gird\n") ==
        "s.yaml:2: strategy: 'gird' is not one of grid, random, did you mean 'grid'?");
  CHECK(error_of(head + "paramters: {}\n") == "s.yaml:2: unknown key 'paramters', did you mean 'parameters'?");
  CHECK(error_of(head + "parameters:\n  x: {values: [6e-4, 0.0006]}\n") ==
        "s.yaml:3: x: '0.0006' is given twice: two runs would be the same");
  CHECK(error_of(head + "parameters:\n  x: {values: []}\n") == "s.yaml:3: 'values' of x must be a list, [a, b]");
  CHECK(error_of(head + "parameters:\n  x: 1\n") ==
        "s.yaml:3:6: x (expected [a, b], {values: [a, b]} or {min: a, max: b}) must be a mapping of keys to values");
  CHECK(error_of(head + "parameters:\n  x: {min: 1}\n") == "s.yaml:3: x: a range needs min and max");
  CHECK(error_of(head + "parameters:\n  x: {min: 2, max: 1}\n") == "s.yaml:3: x: min must be less than max");
  CHECK(error_of(head + "parameters:\n  x: {min: nan, max: 1}\n") == "s.yaml:3: min: 'nan' is not a number");
  CHECK(error_of(head + "parameters:\n  x: {min: 0, max: 1, distribution: log_uniform}\n") ==
        "s.yaml:3: x: min of a log_uniform range must be more than 0");
  CHECK(error_of(head + "parameters:\n  x: {min: 0, max: 1}\n") ==
        "s.yaml:3: x is a continuous range: a grid needs values (or choose strategy: random)");
  CHECK(error_of(head + "parameters:\n  x: {min: 0, max: 1, values: [1]}\n") ==
        "s.yaml:3: x has both values and a range");
  CHECK(error_of(head + "strategy: random\nparameters: {x: {values: [1]}}\n") ==
        "s.yaml: a random sweep needs num_runs");
  CHECK(error_of(head + "parameters:\n  training.seed: {values: [1]}\n  training: {seed: {values: [2]}}\n") ==
        "s.yaml:4: training.seed is given twice, first as training.seed in s.yaml:3");
  CHECK(error_of(head + "parameters:\n  model.seq_length: {value: 1}\n  data.seq_length: {value: 2}\n") ==
        "s.yaml:4: data.seq_length is given twice, first as model.seq_length in s.yaml:3");
  CHECK(error_of(head + "parameters:\n  run.name: {values: [a, b]}\n") ==
        "s.yaml:3: run.name cannot vary: the sweep itself names its runs");
  CHECK(error_of(head + "parameters:\n  sweep_name: {values: [a, b]}\n") ==
        "s.yaml:3: sweep_name cannot vary: the sweep itself names its runs");
  CHECK(error_of(head + "parameters:\n  training.lr: {values: [1, 2]}\n") ==
        "s.yaml:3: all runs would be the same: nothing reads 'training.lr', did you mean 'training.learning_rate'?");
  CHECK(error_of(head + "parameters:\n  model:\n    wholly_unknown: {values: [1, 2]}\n") ==
        "s.yaml:4: all runs would be the same: nothing reads 'model.wholly_unknown'");
  CHECK(error_of(head + "parameters: {repeat: {values: [1, 2]}, mine.lr: {values: [1]}}\n") == "no error");
  CHECK(error_of("sweep_name: a/b\n") == "s.yaml:1: 'a/b' cannot name a sweep: use letters, digits, '_', '-', '.'");
}

TEST_CASE("sweep: a list is its values, a flat name is the setting of that option, and the file names the sweep") {
  const Sweep sweep =
      parse_sweep("parameters: {learning_rate: [0.1, 0.01], zero: {stage: [1, 2]}, mine: [a, b]}\n", "dir/lr.yaml");
  CHECK(sweep.name == "lr");
  REQUIRE(sweep.parameters.size() == 3);
  CHECK(sweep.parameters[0].key == "training.learning_rate");
  CHECK(sweep.parameters[1].key == "zero.stage");
  CHECK(sweep.parameters[2].key == "mine");
  CHECK(run_count(sweep) == 8);
  CHECK(parse_sweep("parameters: {seed: [1]}\n", "stdin").name == "sweep");
  const Sweep repeated = parse_sweep("learning_rate: [1, 2]\nseed: [1, 2]\n", "s.yaml");
  REQUIRE(repeated.parameters.size() == 2);
  CHECK(repeated.parameters[1].key == "training.seed");
  CHECK(parse_sweep("parameters: {seed: [1]}\n", "a b.yaml").name == "sweep");
  CHECK(error_of("parameters:\n  learning_rate: [1]\n  training.learning_rate: [2]\n") ==
        "s.yaml:3: training.learning_rate is given twice, first as training.learning_rate in s.yaml:2");
  CHECK(error_of("parameters:\n  learning_rate: []\n") ==
        "s.yaml:2: 'values' of training.learning_rate must be a list, [a, b]");
}

TEST_CASE("sweep: a huge grid is counted, not made") {
  const std::string big = "{min: 1, max: 1000000, distribution: int}";
  const Sweep sweep = parse_sweep("sweep_name: s\nparameters: {a: " + big + ", b: " + big + "}\n", "s.yaml");
  CHECK(run_count(sweep) == 1000000000000);
  CHECK_THROWS_AS(expand(sweep), zs::Error);
  std::string vast = "sweep_name: s\nparameters:\n";
  for (int i = 0; i < 5; ++i) vast += "  x" + std::to_string(i) + ": " + big + "\n";
  CHECK_THROWS_WITH_AS(run_count(parse_sweep(vast, "s.yaml")), "the sweep has more than 2^64 runs", zs::Error);
  CHECK(texts(vast + "strategy: random\nnum_runs: 3\n").size() == 3);
}

TEST_CASE("sweep: each run is the base, its parameters, the sweep's name and a name of its own") {
  const Config base = Config::parse("training: {seed: 1}\nrun: {name: base}\n", "b.yaml");
  const Sweep sweep = parse_sweep(
      "sweep_name: s\nparameters: {training.seed: {values: [1, 2]}, mine.betas: {values: [[0.9, 0.95], null]}}\n",
      "s.yaml");
  const auto runs = sweep_runs(base, sweep);
  REQUIRE(runs.size() == 4);
  CHECK(runs[3].name == "s_004");
  CHECK(runs[3].config.text("run.name") == "s_004");
  CHECK(runs[3].config.text("sweep_name") == "s");
  CHECK(runs[3].config.integer("training.seed") == 2);
  CHECK(runs[3].config.find("training.seed")->origin == "s.yaml:2");
  CHECK_FALSE(runs[3].config.has("mine.betas"));
  CHECK(manifest(sweep, runs).find("s_003\ts_003.yaml\t2\t[0.9, 0.95]\n") != std::string::npos);
  CHECK_THROWS_AS(
      sweep_runs(base, parse_sweep("sweep_name: s\nparameters: {training.seed: {values: [x]}}\n", "s.yaml")),
      zs::Error);
}

}  // namespace zs::config
