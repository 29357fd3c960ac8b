// SPDX-License-Identifier: Apache-2.0
#include "config/conditions.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"

using zs::config::find_set;
using zs::config::parse_conditions;

TEST_CASE("conditions: the command of a set is its own, else the file's") {
  const auto sets = zs::config::parse_conditions(
      "run: torchrun a.py\nsets:\n  x: {conditions: {c: {a: 1}}}\n  y: {run: b.py, conditions: {c: {a: 1}}}\n",
      "b.yaml");
  CHECK(sets[0].run == "torchrun a.py");
  CHECK(sets[1].run == "b.py");
}

TEST_CASE("conditions: mappings, texts and anchors give options in order") {
  const auto sets = parse_conditions(
      "options: {z: &z {backend: zero, zero_stage: 3}}\n"
      "sets:\n  s:\n    description: d\n    conditions:\n"
      "      a: *z\n      b: {<<: *z, zero_stage: 1, deepcompile: true, compile: false}\n      c: --x 'y z'\n      d: "
      "{set: [a.b=1, \"c=it's\"]}\n      e:\n",
      "b.yaml");
  REQUIRE(sets.size() == 1);
  const auto& set = find_set(sets, "s", "b.yaml");
  CHECK(set.description == "d");
  REQUIRE(set.conditions.size() == 5);
  CHECK(set.conditions[0].options == "--backend zero --zero_stage 3");
  CHECK(set.conditions[1].options == "--backend zero --zero_stage 1 --deepcompile");
  CHECK(set.conditions[2].options == "--x 'y z'");
  CHECK(set.conditions[3].options == "--set a.b=1 'c=it'\\''s'");
  CHECK(set.conditions[4].options == "");
}

TEST_CASE("conditions: mistakes are located") {
  const auto error_of = [](const std::string& yaml) -> std::string {
    try {
      parse_conditions(yaml, "b.yaml");
    } catch (const zs::Error& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(error_of("set: {}\n") == "b.yaml:1: unknown key 'set', expected options, run, resume and sets");
  CHECK(error_of("sets:\n  s: {description: d}\n") == "b.yaml:2: set 's' has no conditions");
  CHECK(error_of("sets:\n  s:\n    conditions:\n      a/b: x\n") ==
        "b.yaml:4: 'a/b' cannot name a condition: use letters, digits, '_', '-', '.'");
  const std::string longest(200, 'x');
  CHECK(error_of("sets: {s: {conditions: {" + longest + ": --seed 1}}}\n") == "no error");
  CHECK(error_of("sets: {s: {conditions: {" + longest + "x: --seed 1}}}\n") ==
        "b.yaml:1: '" + longest.substr(0, 40) + "...' cannot name a condition: it has 201 letters, and may have 200");
  CHECK(error_of("sets:\n  s:\n    conditions:\n      a: x\n      a: y\n") ==
        "b.yaml:5:7: 'a' is given twice, first in line 4");
  CHECK(error_of("sets:\n  s:\n    conditions: {a: {b: {c: 1}}}\n") ==
        "b.yaml:3: option 'b' needs a value, a list, true or false");
  CHECK(error_of("options: {}\n") == "b.yaml: has no sets");
  CHECK(error_of("sets: {s: {conditons: {a: x}}}\n") ==
        "b.yaml:1: 'conditons' in set 's': expected description, run and resume (texts) and conditions");
}

TEST_CASE("conditions: an unknown set names the nearest") {
  const auto sets = parse_conditions("sets: {full_comparison: {conditions: {a: x}}}\n", "b.yaml");
  CHECK_THROWS_WITH_AS(find_set(sets, "full_comparson", "b.yaml"),
                       "b.yaml: no set 'full_comparson', did you mean 'full_comparison'?", zs::Error);
  CHECK_THROWS_WITH_AS(find_set(sets, "x", "b.yaml"), "b.yaml: no set 'x': there are full_comparison", zs::Error);
}

TEST_CASE("conditions: a file of ds_verify_loss is read as it is") {
  const auto sets = parse_conditions(
      "common_options:\n  wandb: \"--use_wandb\"\n  batch_size: \"--batch_size 1\"\n"
      "base_args: \"{batch_size} --seq_length 64\"\n"
      "condition_sets:\n  one:\n    description: \"One\"\n    conditions:\n"
      "      z1:\n        args: \"--zero_stage 1 {base_args} {wandb}\"\n        description: \"ZeRO 1\"\n"
      "      z2: \"--zero_stage 2 {wandb}\"\n      z3: {zero_stage: 3}\n",
      "b.yaml");
  REQUIRE(sets.size() == 1);
  REQUIRE(sets[0].conditions.size() == 3);
  CHECK(sets[0].conditions[0].options == "--zero_stage 1 --batch_size 1 --seq_length 64 --use_wandb");
  CHECK(sets[0].conditions[1].options == "--zero_stage 2 --use_wandb");
  CHECK(sets[0].conditions[2].options == "--zero_stage 3");
  const auto error = [](const std::string& yaml) {
    try {
      parse_conditions(yaml, "b.yaml");
    } catch (const zs::Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK(error("common_options: {wandb: --use_wandb}\nsets:\n  a:\n    conditions: {x: {args: \"{wandbb}\"}}\n") ==
        "b.yaml:4: nothing is called 'wandbb' in common_options, did you mean 'wandb'?");
  CHECK(error("base_args: \"{x\"\nsets: {a: {conditions: {x: --eval}}}\n") == "no error");
  CHECK(error("common_options: {a: [1]}\nsets: {a: {conditions: {x: --eval}}}\n") == "b.yaml:1: 'a' must be a text");
}
