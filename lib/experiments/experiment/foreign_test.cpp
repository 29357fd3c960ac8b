// SPDX-License-Identifier: Apache-2.0
#include "experiment/foreign.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"

namespace zs::experiment {
namespace {

TEST_CASE("a template gets a cell's options as words, or one by one") {
  const Cell cell{"z1",
                  {"--zero_stage", "1", "--compile", "--name", "a b", "--betas", "0.9", "0.95", "--zero_stage", "2"}};
  CHECK(fill("run.py {options} -x", cell, "/r").line ==
        "run.py --zero_stage 2 --compile --name 'a b' --betas 0.9 0.95 -x");
  CHECK(fill("run.py --s={zero_stage} {name}", cell, "/r").line == "run.py --s=2 'a b'");
  CHECK(fill("run.py", cell, "/r").line == "run.py --zero_stage 2 --compile --name 'a b' --betas 0.9 0.95");
  CHECK(fill("awk '{{print}' ${HOME} {run} {zero_stage}", cell, "/r").line == "awk '{print}' ${HOME} /r 2");
  CHECK_THROWS_WITH_AS(fill("run.py {zero_stag}", cell, "/r"),
                       "z1: {zero_stag}: it has no option 'zero_stag', did you mean 'zero_stage'?; {{ is a brace",
                       Error);
}

TEST_CASE("the words that go on with a run stand where {resume} does, else behind the command") {
  const Cell cell{"z1", {"--zero_stage", "1"}};
  CHECK(fill("run.py {options} {resume} -x", cell, "/r").line == "run.py --zero_stage 1  -x");
  CHECK(fill_resumed("run.py {options} {resume} -x", "--from {checkpoint}", cell, "/r") ==
        "run.py --zero_stage 1 --from {checkpoint} -x");
  CHECK(fill_resumed("run.py", "--from {checkpoint}", cell, "/r") == "run.py --from {checkpoint} --zero_stage 1");
  CHECK_THROWS_AS(fill("run.py {checkpoint}", cell, "/r"), Error);
}

TEST_CASE("a run that has begun goes on from its newest checkpoint, or from the start") {
  const TemporaryFolder folder;
  const registry::Fields record = {{"run_command", "t.py"}, {"resume_with", "t.py --from {checkpoint}"}};
  std::string from;
  const std::string run = std::filesystem::path(folder.file("x")).parent_path().string();
  CHECK(line_to_start(record, run, from) == "t.py");
  write_file(folder.file("run.log"), "step 1\n");
  CHECK(line_to_start(record, run, from) == "t.py");  // nothing was saved
  CHECK(line_to_start({{"run_command", "t.py"}, {"resume_with", "t.py --go_on"}}, run, from) == "t.py --go_on");
  CHECK(from.empty());
}

TEST_CASE("a file is made from its template with values at dotted places") {
  const TemporaryFolder folder;
  write_file(folder.file("ds.json"), R"({"zero_optimization": {"stage": 0}, "bf16": {}})");
  const Cell cell{"z3", {"--zero_stage", "3", "--bf16"}};
  const Filled filled = fill("deepspeed t.py --deepspeed {file:" + folder.file("ds.json") +
                                 " zero_optimization.stage=zero_stage bf16.enabled=bf16 a.b.c=zero_stage}",
                             cell, "/runs/1");
  CHECK(filled.line == "deepspeed t.py --deepspeed /runs/1/ds.json");
  REQUIRE(filled.files.size() == 1);
  CHECK(filled.files[0].first == "ds.json");
  CHECK(filled.files[0].second.find("\"stage\": 3") != std::string::npos);
  CHECK(filled.files[0].second.find("\"enabled\": true") != std::string::npos);
  CHECK(filled.files[0].second.find("\"c\": 3") != std::string::npos);
}

TEST_CASE("a sweep's configuration gives its keys by their last words") {
  const TemporaryFolder folder;
  write_file(folder.file("s_001.yaml"), "training:\n  lr: 0.1\nmodel: {width: 8}\nrun: {name: s_001}\nsweep_name: s\n");
  const Cell cell{"s_001", {folder.file("s_001.yaml"), "--lr", "0.2"}};
  CHECK(fill("t {options}", cell, "/r").line == "t --lr 0.2 --width 8");
  CHECK(fill("t --config {config}", cell, "/r").line == "t --config " + folder.file("s_001.yaml"));
  CHECK(foreign_configuration(fill("t.py", cell, "/r"), cell).text("training.learning_rate") == "0.2");
}

}  // namespace
}  // namespace zs::experiment
