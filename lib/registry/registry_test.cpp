// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "registry/index.hpp"
#include "registry/run.hpp"

namespace fs = std::filesystem;
using namespace zs::registry;

namespace {

Runs read(const std::string& registry, bool anew = false) {
  return read_runs(
      registry, [](const zs::Fault& fault) { FAIL(fault.what); }, anew);
}

std::string content(const std::string& path) { return zs::Input(path).read_all(); }

}  // namespace

TEST_CASE("registry: a run made from a configuration has its settings, its environment and its fields") {
  const zs::TemporaryFolder place;
  const auto config = zs::config::Config::parse(
      "run: {name: first}\nsweep_name: s\ntraining: {learning_rate: 6e-4, eval: yes}\n"
      "data: {dataset_size: 10M}\nmine: {x: 'a,\"b'}\n",
      "c.yaml");
  const Run run = Run::create(place.path() + "/runs", config, {{"command", "zs-train c.yaml"}});
  CHECK(fs::exists(run.folder() + "/config.yaml"));
  const Runs runs = read(place.path() + "/runs");
  REQUIRE(runs.size() == 1);
  CHECK(runs.text(0, "run_id") == run.id());
  CHECK(runs.text(0, "run_name") == "first");
  CHECK(runs.text(0, "sweep_name") == "s");
  CHECK(runs.text(0, "status") == "running");
  CHECK(runs.text(0, "training.learning_rate") == "6e-4");
  CHECK(runs.text(0, "training.eval") == "true");
  CHECK(runs.text(0, "data.dataset_size") == "10000000");
  CHECK(runs.text(0, "command") == "zs-train c.yaml");
  CHECK(runs.text(0, "host") != "");
  run.update({{"final_train_loss", "2"}, {"note", "tab\there\nand\\there"}});
  run.finish("complete", {{"final_train_loss", "1.5"}});
  const Runs later = read(place.path() + "/runs");
  CHECK(later.text(0, "final_train_loss") == "1.5");
  CHECK(later.text(0, "note") == "tab\there\nand\\there");
  CHECK(later.text(0, "status") == "complete");
  CHECK(content(place.path() + "/runs/runs.csv").find("\"a,\"\"b\"") != std::string::npos);
}

TEST_CASE("registry: an empty value takes a field back") {
  const zs::TemporaryFolder place;
  const Run run = Run::create(place.path(), "x", {{"a", "1"}});
  run.update({{"a", ""}, {"b", "2"}});
  CHECK(read(place.path()).text(0, "a") == "");
  CHECK_THROWS_AS(run.update({{"run_id", "y"}}), zs::Error);
}

TEST_CASE("registry: the index is only a copy") {
  const zs::TemporaryFolder place;
  const Run a = Run::create(place.path(), "a", {{"x", "1"}});
  const Run b = Run::create(place.path(), "b", {{"x", "2"}});
  const std::string csv = (read(place.path()), content(place.path() + "/runs.csv"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 3);
  SUBCASE("deleted") {
    fs::remove(place.path() + "/runs.csv");
    fs::remove(place.path() + "/.runs.index");
  }
  SUBCASE("runs.csv deleted") { fs::remove(place.path() + "/runs.csv"); }
  SUBCASE("runs.csv changed by another tool") { std::ofstream(place.path() + "/runs.csv") << csv.substr(0, 40); }
  SUBCASE("damaged") {
    std::fstream index(place.path() + "/.runs.index", std::ios::in | std::ios::out);
    index.seekp(60);
    index.put('\x7f');
  }
  SUBCASE("cut short") { fs::resize_file(place.path() + "/.runs.index", 40); }
  SUBCASE("empty") { fs::resize_file(place.path() + "/.runs.index", 0); }
  SUBCASE("read anew") { read(place.path(), true); }
  const Runs runs = read(place.path());
  REQUIRE(runs.size() == 2);
  CHECK(runs.text(0, "run_id") == a.id());
  CHECK(runs.text(1, "x") == "2");
  CHECK(content(place.path() + "/runs.csv") == csv);
}

TEST_CASE("registry: what changed since the index was written is read anew, also within the grain of a file's time") {
  const zs::TemporaryFolder place;
  const Run run = Run::create(place.path(), "a", {});
  for (int i = 0; i < 50; ++i) {
    run.update({{"x", std::to_string(i)}});
    REQUIRE(read(place.path()).text(0, "x") == std::to_string(i));
  }
}

TEST_CASE("registry: an old index is trusted for what did not change, and only for that") {
  const zs::TemporaryFolder place;
  const Run a = Run::create(place.path(), "a", {{"x", "1"}});
  const Run b = Run::create(place.path(), "b", {{"x", "1"}});
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(a.folder(), old);
  fs::last_write_time(b.folder(), old);
  read(place.path());
  // Behind the index's back, the time left as it was: not seen, which shows that records are not read again.
  const std::string record = fs::directory_iterator(a.folder() + "/record")->path().string();
  std::ofstream(record) << record_text({{"run_id", a.id()}, {"x", "9"}});
  fs::last_write_time(a.folder(), old);
  b.update({{"x", "2"}});
  CHECK(read(place.path()).text(0, "x") == "1");
  CHECK(read(place.path()).text(1, "x") == "2");
  CHECK(read(place.path(), true).text(0, "x") == "9");
}

TEST_CASE("registry: a damaged record is a fault, the other runs are listed") {
  const zs::TemporaryFolder place;
  const Run a = Run::create(place.path(), "a", {});
  Run::create(place.path(), "b", {});
  const std::string record = fs::directory_iterator(a.folder() + "/record")->path().string();
  std::ofstream(record) << "nonsense";
  fs::create_directory(place.path() + "/no_run");
  std::vector<std::string> faults;
  const Runs runs = read_runs(
      place.path(), [&](const zs::Fault& fault) { faults.push_back(fault.what); }, true);
  CHECK(runs.size() == 1);
  REQUIRE(faults.size() == 1);
  CHECK(faults[0] == record + ":1: is no record of a run: this run is left out");
}

TEST_CASE("registry: a runs.csv of another tool is put aside, not replaced") {
  const zs::TemporaryFolder place;
  std::ofstream(place.path() + "/runs.csv") << "run_id,run_name\nold1,x\n";
  Run::create(place.path(), "a", {});
  CHECK(content(place.path() + "/runs.csv.old") == "run_id,run_name\nold1,x\n");
  CHECK(content(place.path() + "/runs.csv").find("old1") == std::string::npos);
}

TEST_CASE("registry: a removed run is gone with its files, a registry that is none is an error") {
  const zs::TemporaryFolder place;
  const Run a = Run::create(place.path(), "a", {});
  Run::create(place.path(), "b", {});
  CHECK(registered(place.path(), a.id()));
  remove(place.path(), a.id());
  CHECK_FALSE(registered(place.path(), a.id()));
  CHECK_FALSE(registered(place.path(), "../" + fs::path(place.path()).filename().string()));
  CHECK(read(place.path()).size() == 1);
  CHECK_FALSE(fs::exists(a.folder()));
  CHECK_THROWS_AS(remove(place.path(), a.id()), zs::Error);
  CHECK_THROWS_WITH_AS(read(place.path() + "/none"), (place.path() + "/none: no such registry").c_str(), zs::Error);
}

TEST_CASE("registry: what killed writers left is cleared away when it is old, nothing else") {
  const zs::TemporaryFolder place;
  const Run run = Run::create(place.path(), "a", {});
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(2);
  const std::vector<std::string> left = {place.path() + "/.node-1-0.clock", place.path() + "/.node-1-1.runs.csv",
                                         place.path() + "/.removed_x_abc", run.folder() + "/.00000002-node-1-0.tsv"};
  const std::vector<std::string> kept = {place.path() + "/.notes", place.path() + "/.runs.index",
                                         run.folder() + "/.hidden"};
  for (const auto& names : {left, kept}) {
    for (const std::string& name : names) {
      std::ofstream(name) << "x";
      fs::last_write_time(name, old);
    }
  }
  std::ofstream(place.path() + "/.node-2-0.clock") << "of a writer at work";
  tidy(place.path());
  for (const std::string& name : left) CHECK_MESSAGE(!fs::exists(name), name);
  for (const std::string& name : kept) CHECK_MESSAGE(fs::exists(name), name);
  CHECK(fs::exists(place.path() + "/.node-2-0.clock"));
}

TEST_CASE("registry: processes that write at once lose nothing") {
  const zs::TemporaryFolder place;
  constexpr int kProcesses = 16, kRuns = 8;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        for (int i = 0; i < kRuns; ++i) {
          const Run run = Run::create(place.path(), std::to_string(p) + "-" + std::to_string(i), {});
          run.update({{"loss", std::to_string(i)}});
          run.finish("complete", {{"digest", std::to_string(p)}});
        }
        ::_exit(0);
      } catch (...) {
        ::_exit(1);
      }
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  const Runs runs = read(place.path());
  REQUIRE(runs.size() == kProcesses * kRuns);
  std::set<std::string> names;
  for (std::size_t row = 0; row < runs.size(); ++row) {
    names.insert(runs.text(row, "run_name"));
    CHECK(runs.text(row, "status") == "complete");
    CHECK(runs.text(row, "loss") == runs.text(row, "run_name").substr(runs.text(row, "run_name").find('-') + 1));
    CHECK(runs.text(row, "digest") == runs.text(row, "run_name").substr(0, runs.text(row, "run_name").find('-')));
  }
  CHECK(names.size() == runs.size());
}
