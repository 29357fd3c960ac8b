// SPDX-License-Identifier: Apache-2.0
// The life of an experiment's cells: planned, started, ended, judged, planned again.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "experiment/plan.hpp"
#include "experiment/start.hpp"
#include "metric/file.hpp"
#include "registry/run.hpp"

namespace fs = std::filesystem;
namespace zs::experiment {
using zs::registry::value;
using Words = std::vector<std::string>;

namespace {

std::string text_of(const std::string& path) { return zs::Input(path).read_all(); }

/// An experiment of the cells a and b in a folder of its own, with a zs-train that is frozen.
struct Planned {
  zs::TemporaryFolder place{};
  std::string path = std::getenv("PATH"), folder = place.file("results");
  Experiment experiment{};

  Planned() {
    fs::create_directories(folder);
    fs::create_directories(place.file("bin"));
    write_program("a program");
    ::setenv("PATH", (place.file("bin") + ":" + path).c_str(), 1);
    std::vector<Cell> cells;
    for (const char* const name : {"a", "b"})
      cells.push_back({name, {"--output_dir", place.file("runs"), "--seed", "7"}});
    experiment = plan_experiment(cells, {{"experiment", folder},
                                         {"title", "set x"},
                                         {"script", "/x/batch.sbatch"},
                                         {"max_restarts", "2"},
                                         {"gpus_per_node", ""}});
  }
  ~Planned() { ::setenv("PATH", path.c_str(), 1); }
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;

  void write_program(const std::string& text) {
    zs::write_file(place.file("bin/zs-train"), text);
    fs::permissions(place.file("bin/zs-train"), fs::perms::owner_all);  // else it is not found
  }
  std::string run(const std::string& name) { return experiment.cell(name).run(); }
  /// As a training that got to its end.
  void train(const std::string& name) {
    zs::metric::Store store;
    zs::metric::Run& run = store.runs.emplace_back();
    run.name = name;
    run.attributes = {{"expected_steps", "2"}, {"state_digest", std::string(32, 'a')}};
    run.records.column("step").integers() = {1, 2};
    zs::write_file(this->run(name) + "/metrics.h5", zs::metric::to_h5(store));
  }
};

}  // namespace

TEST_CASE("experiment: metadata.json comes back as it was written, and is JSON of the right types") {
  const zs::TemporaryFolder place;
  const std::string folder = fs::canonical(place.path()).string();
  Experiment written{folder, {{"ranks", "4"}, {"note", "7"}, {"revision1.name", "v\"1"}, {"gpus_per_node", ""}}, {}};
  written.cells.push_back({"b", {"--seed", "7"}, {{"run", "/r/1"}, {"exit_code", ""}, {"found.state", "MISSING"}}});
  written.cells.push_back({"a", {}, {{"run", "3"}, {"exit_code", "42"}, {"log", ""}}});
  written.write();
  const Experiment read = Experiment::read(place.path());
  CHECK(read.folder == folder);
  CHECK(read.fields == written.fields);
  REQUIRE(read.cells.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(read.cells[i].name == written.cells[i].name);
    CHECK(read.cells[i].arguments == written.cells[i].arguments);
    CHECK(read.cells[i].fields == written.cells[i].fields);
  }
  CHECK(read.cells[0].run() == "/r/1");
  CHECK(read.cells[1].run() == "");  // the number of a comparison's run
  const std::string text = text_of(folder + "/metadata.json");
  for (const char* const part :
       {"\"ranks\": 4", "\"note\": \"7\"", "\"exit_code\": null", "\"exit_code\": 42", "\"log\": null"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part);
}

TEST_CASE("experiment: a metadata.json of another program keeps what it has") {
  const zs::TemporaryFolder place;
  zs::write_file(place.file("metadata.json"),
                 R"({"tags": [1, "x"], "conditions": {"a": {"list": [2], "n": {"m": 3}}}})");
  Experiment experiment = Experiment::read(place.path());
  REQUIRE(experiment.cells.size() == 1);
  zs::registry::set(experiment.cell("a").fields, "exit_code", "0");
  experiment.write();
  const std::string text = text_of(place.file("metadata.json"));
  for (const char* const part : {"\"tags\": [", "\"list\": [", "\"m\": \"3\"", "\"exit_code\": 0"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part);
}

TEST_CASE("experiment: a metadata.json that is none is told with its place") {
  const zs::TemporaryFolder place;
  CHECK_THROWS_WITH_AS(Experiment::read(place.path()),
                       (place.path() + ": is not the results folder of an experiment: it has no metadata.json").c_str(),
                       zs::Error);
  for (const char* const text :
       {"{", "[]", "{\"condition_order\": [\"a\"], \"conditions\": {}}", "{\"condition_order\": 3}",
        "{\"conditions\": {\"a\": 1}, \"condition_order\": [\"a\"]}"}) {
    zs::write_file(place.file("metadata.json"), text);
    std::string said;
    try {
      Experiment::read(place.path());
    } catch (const zs::Error& error) {
      said = error.what();
    }
    CHECK_MESSAGE(said.find("/metadata.json: ") != std::string::npos, text);
  }
}

TEST_CASE("experiment: how many have ended, and what the rest takes by the time of those") {
  Experiment experiment{"/e"};
  for (const char* const name : {"a", "b", "c", "d"}) experiment.cells.push_back({name});
  CHECK(experiment.progress() == "0 of 4 have ended");
  experiment.cells[0].fields = {{"exit_code", "0"}, {"seconds", "1800"}};
  experiment.cells[2].fields = {{"exit_code", "1"}, {"seconds", "30"}};
  experiment.cells[3].fields = {{"seconds", "9999"}};  // it goes on
  CHECK(experiment.progress() == "2 of 4 have ended, the rest takes about 0:30:30");
  CHECK(experiment.label(experiment.cells[2]) == "[3/4] c");
  experiment.fields = {{"runs_planned", "12"}};
  CHECK(experiment.label(experiment.cells[2]) == "[3/12] c");
  CHECK(experiment.progress() == "2 of 12 have ended, the rest takes about 2:32:30");
  CHECK_THROWS_WITH_AS(experiment.cell("e"), "/e: has no condition 'e', did you mean 'a'?", zs::Error);
}

TEST_CASE("experiment: a cell that is planned can start, and ends as what its metrics say") {
  Planned planned;
  const Experiment before = Experiment::read(planned.folder);
  CHECK(value(before.fields, "experiment") == "set x");
  CHECK(value(before.fields, "script") == "");  // of the runs
  CHECK(value(zs::registry::read_record(planned.run("a")), "experiment") == before.folder);
  CHECK(value(zs::registry::read_record(planned.run("a")), "max_restarts") == "");

  const Start start = prepare(planned.folder, "a", {"mpirun", "-n", "2"});
  CHECK(start.words ==
        Words{"mpirun", "-n", "2", "zs-train", "--output_dir", planned.place.file("runs"), "--seed", "7"});
  CHECK(start.run == planned.run("a"));
  CHECK(start.log == before.folder + "/a.log");
  CHECK(start.label == "[1/2] a");
  planned.train("a");
  CHECK(finish(planned.folder, "a", {{"exit_code", "0"}, {"seconds", "3"}}) ==
        "[1/2] a: done in 3 s, state digest " + std::string(32, 'a') +
            "; 1 of 2 have ended, the rest takes about 0:00:03");
  zs::write_file(before.folder + "/b.log", "noise\nzs-train: out of memory\nnoise\n");
  CHECK(finish(planned.folder, "b", {{"exit_code", "42"}, {"seconds", "1"}}) ==
        "[2/2] b: FAILED with exit code 42 after 1 s (see " + before.folder +
            "/b.log):\n    zs-train: out of memory\n[2/2] b failed; 2 of 2 have ended");
  CHECK(conclude(planned.folder) ==
        "b: FAILED with exit code 42: zs-train: out of memory\nto go on: zs-runs rerun " + before.folder + "\n");
  const std::string log = text_of(before.folder + "/experiment_log.txt");
  CHECK(log.find("| a | SUCCESS | 0 | 3 | " + std::string(32, 'a') + " |\n| b | FAILED | 42 | 1 | none |") !=
        std::string::npos);

  // Once more, but for one call only, and not what is complete.
  const zs::registry::Fields alive = {{"host", value(zs::registry::environment(), "host")},
                                      {"process", value(zs::registry::environment(), "process")}};
  const auto again = plan_again(planned.folder, false, nullptr, alive);
  REQUIRE(again.size() == 1);
  CHECK(again[0].name == "b");
  CHECK(plan_again(planned.folder, false, nullptr, alive).empty());
  CHECK(plan_again(planned.folder, true, nullptr, alive).size() == 1);
  const Words other = {"a"};
  CHECK(plan_again(planned.folder, true, &other, alive).empty());
  CHECK_FALSE(Experiment::read(planned.folder).cell("b").ended());
}

TEST_CASE("experiment: the log of a cell that goes on is that of its newest checkpoint") {
  Planned planned;
  const std::string log = planned.experiment.folder + "/a.log";
  const std::string begin =
      "run: x=1\nEpoch 1, Step 1, Loss: 3 sync: True time: 0.1 alloc_mem: 1 peak_mem: 2\nnote, Step 9, is none\n";
  const std::string end =
      "Epoch 1, Step 2, Loss: 2 sync: True time: 0.1 alloc_mem: 1 peak_mem: 2\nEpoch 1, Step 10, Loss: 1 sync: True "
      "time: 0.1 alloc_mem: 1 peak_mem: 2\nSummary: x\n"
      "state_digest: 0\nsrun: error: n1: task 0: Exited with exit code 3\n";
  zs::write_file(log, begin + end);
  fs::create_directories(planned.run("a") + "/checkpoint_1");
  prepare(planned.folder, "a", {"x"});
  CHECK(text_of(log) == begin);
  fs::remove(planned.run("a") + "/checkpoint_1");
  prepare(planned.folder, "a", {"x"});
  CHECK(text_of(log) == "");
}

TEST_CASE("experiment: what was frozen must be what it was, of configurations only the cell's own") {
  Planned planned;
  const auto refusal = [&](const std::string& name) -> std::string {
    try {
      prepare(planned.folder, name, {"x"});
    } catch (const zs::Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal("a") == "");
  zs::write_file(planned.run("a") + "/config.yaml", "a: 1\n");
  CHECK(refusal("a") ==
        "changed since this was submitted: " + planned.run("a") + "/config.yaml; restore it, or submit a new run");
  CHECK(refusal("b") == "");
  planned.write_program("another");
  CHECK(refusal("b").starts_with("changed since this was submitted: "));
  fs::remove(planned.folder + "/frozen.sha256");
  CHECK(refusal("b") == "gone since this was submitted: " + planned.experiment.folder + "/frozen.sha256; submit again");
  ::setenv("SLURM_RESTART_COUNT", "3", 1);
  freeze(planned.folder + "/frozen.sha256", {}, false);
  CHECK(refusal("b") == "b: restarted more than 2 times (--max_restarts)");
  ::unsetenv("SLURM_RESTART_COUNT");
  CHECK(value(zs::registry::read_record(planned.run("b")), "exit_code") == "75");
}

TEST_CASE("experiment: what cannot be planned whole leaves no run") {
  const zs::TemporaryFolder place;
  const std::vector<Cell> cells = {{"a", {"--output_dir", place.file("runs")}}, {"a_detailed", {}}};
  CHECK_THROWS_WITH_AS(plan_experiment(cells, {{"experiment", place.path()}}),
                       "condition 'a_detailed': NAME_detailed.log is the log of condition NAME: call it something else",
                       zs::Error);
  CHECK_THROWS_WITH_AS(plan_experiment({{"../a", {}}}, {{"experiment", place.path()}}),
                       "'../a' cannot name a condition: use letters, digits, '_', '-', '.'", zs::Error);
  // No room for metadata.json.
  fs::create_directories(place.file("metadata.json"));
  CHECK_THROWS_AS(plan_experiment({cells[0]}, {{"experiment", place.path()}}), zs::Error);
  CHECK(fs::is_directory(place.file("runs")));
  for (const auto& entry : fs::directory_iterator(place.file("runs")))
    CHECK_FALSE(entry.path().filename().string().starts_with("2"));
}

}  // namespace zs::experiment
