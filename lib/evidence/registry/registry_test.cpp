// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "base/sheet.hpp"
#include "registry/listing.hpp"
#include "registry/run.hpp"
#include "registry/runs.hpp"

namespace fs = std::filesystem;
namespace zs::registry {
namespace {

Runs read(const std::string& registry) {
  return read_runs(registry, [](const zs::Fault& fault) { FAIL(fault.what); });
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

TEST_CASE("registry: ids of runs that are made one after another ascend") {
  const zs::TemporaryFolder place;
  std::string last;
  for (int i = 0; i < 50; ++i) {
    const Run run = Run::create(place.path(), "x", {});
    CHECK(run.id() > last);
    last = run.id();
  }
}

TEST_CASE("registry: an empty value takes a field back") {
  const zs::TemporaryFolder place;
  const Run run = Run::create(place.path(), "x", {{"a", "1"}});
  run.update({{"a", ""}, {"b", "2"}});
  CHECK(read(place.path()).text(0, "a") == "");
  CHECK_THROWS_AS(run.update({{"run_id", "y"}}), zs::Error);
}

TEST_CASE("registry: runs.csv is only a copy") {
  const zs::TemporaryFolder place;
  const Run a = Run::create(place.path(), "a", {{"x", "1"}});
  const Run b = Run::create(place.path(), "b", {{"x", "2"}});
  const std::string csv = (read(place.path()), content(place.path() + "/runs.csv"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 3);
  SUBCASE("deleted") { fs::remove(place.path() + "/runs.csv"); }
  SUBCASE("cut short") { std::ofstream(place.path() + "/runs.csv") << csv.substr(0, 40); }
  const Runs runs = read(place.path());
  REQUIRE(runs.size() == 2);
  CHECK(runs.text(0, "run_id") == a.id());
  CHECK(runs.text(1, "x") == "2");
  CHECK(content(place.path() + "/runs.csv") == csv);
}

TEST_CASE("registry: a damaged record is a fault, the other runs are listed") {
  const zs::TemporaryFolder place;
  const Run a = Run::create(place.path(), "a", {});
  Run::create(place.path(), "b", {});
  const std::string record = fs::directory_iterator(a.folder() + "/record")->path().string();
  std::ofstream(record) << "nonsense";
  fs::create_directory(place.path() + "/no_run");
  std::vector<std::string> faults;
  const Runs runs = read_runs(place.path(), [&](const zs::Fault& fault) { faults.push_back(fault.what); });
  CHECK(runs.size() == 1);
  REQUIRE(faults.size() == 1);
  CHECK(faults[0] == record + ":1: is not a record of a run: this run is left out");
}

TEST_CASE("registry: a runs.csv that zs has not written is never touched: the runs go into zs-runs.csv") {
  const zs::TemporaryFolder place;
  const std::string theirs = place.path() + "/runs.csv";
  std::string text;
  SUBCASE("of another tool") { text = "run_id,run_name\nold1,x\n"; }
  SUBCASE("with our header and ids of another tool") { text = to_csv(read(place.path())) + "exp-1,x,,,\n"; }
  SUBCASE("a link") {
    std::ofstream(place.path() + "/elsewhere") << "x";
    fs::create_symlink("elsewhere", theirs);
    text = "x";
  }
  if (text != "x") std::ofstream(theirs) << text;
  for (const char* const name : {"a", "b"}) {
    Run::create(place.path(), name, {{"note", "line\nline, \"quoted\""}});
    CHECK(read(place.path()).csv == "zs-runs.csv");
  }
  CHECK(content(theirs) == text);
  const std::string ours = content(place.path() + "/zs-runs.csv");
  CHECK(ours == to_csv(read(place.path())));
  // When theirs is gone, runs.csv is ours again; that it is ours is seen without the index too.
  fs::remove(theirs);
  CHECK(read(place.path()).csv == "runs.csv");
  CHECK(read(place.path()).csv == "runs.csv");
  CHECK(content(theirs) == ours);
}

TEST_CASE("registry: with a folder that somebody has renamed, the table is still known to be of zs") {
  const zs::TemporaryFolder place;
  const Run run = Run::create(place.path(), "a", {});
  fs::rename(run.folder(), place.path() + "/renamed");
  CHECK(read(place.path()).text(0, "run_id") == "renamed");
  CHECK(read(place.path()).csv == "runs.csv");
  // Copied, as a whole registry may be.
  const std::string csv = place.path() + "/runs.csv", text = content(csv);
  fs::remove(csv);
  std::ofstream(csv) << text;
  CHECK(read(place.path()).csv == "runs.csv");
  std::ofstream(csv, std::ios::app) << "exp-1,x,,,\n";  // and what another has added to is another's
  CHECK(read(place.path()).csv == "zs-runs.csv");
}

TEST_CASE("registry: pipes, devices, links and huge files where others may write: one run is left out, none waits") {
  const zs::TemporaryFolder place;
  const Run good = Run::create(place.path(), "good", {});
  const Run bad = Run::create(place.path(), "bad", {});
  const std::string record = bad.folder() + "/record/00000002-x-1-0.tsv";
  std::string what = ": this run is left out";
  SUBCASE("a pipe") {
    REQUIRE(::mkfifo(record.c_str(), 0666) == 0);
    what = record + ": is not a regular file" + what;
  }
  SUBCASE("an endless device") {
    fs::create_symlink("/dev/zero", record);
    what = record + ": is a link, expected a file" + what;
  }
  SUBCASE("a huge file") {
    std::ofstream(record) << "#zs-record 1\n";
    fs::resize_file(record, std::uintmax_t{1} << 33);
    what = record + ": is larger than 16777216 bytes" + what;
  }
  SUBCASE("a number that no later file could have") {
    const std::string name = bad.folder() + "/record/99999999999999999999-x.tsv";
    std::ofstream(name) << "#zs-record 1\n";
    what = name + ": has no name of a record's file: move it away" + what;
  }
  fs::remove(place.path() + "/runs.csv");
  REQUIRE(::mkfifo((place.path() + "/runs.csv").c_str(), 0666) == 0);
  std::vector<std::string> faults;
  const Runs runs = read_runs(place.path(), [&](const zs::Fault& fault) { faults.push_back(fault.what); });
  REQUIRE(runs.size() == 1);
  CHECK(runs.text(0, "run_id") == good.id());
  CHECK(runs.csv == "zs-runs.csv");
  REQUIRE(faults.size() == 1);
  CHECK(faults[0] == what);
}

TEST_CASE("registry: updates hold by the number of their file, however many digits it has") {
  const zs::TemporaryFolder place;
  const Run run = Run::create(place.path(), "a", {});
  std::ofstream(run.folder() + "/record/99999999-x-1-0.tsv") << record_text({{"x", "1"}});
  for (const char* const value : {"2", "3"}) {
    run.update({{"x", value}});
    CHECK(zs::registry::value(read_record(run.folder()), "x") == value);
  }
}

TEST_CASE("registry: what is not for everybody who may enter the registry is not in its files") {
  const zs::TemporaryFolder place;
  fs::permissions(place.path(), fs::perms(0755));
  Run::create(place.path(), "public", {{"x", "seen"}});
  const mode_t before = ::umask(077);
  const Run hidden = Run::create(place.path(), "private", {{"x", "unseen"}});
  SUBCASE("made so") {}
  SUBCASE("a part of the record only") { fs::permissions(hidden.folder(), fs::perms(0755)); }
  const Runs runs = read(place.path());
  ::umask(before);
  CHECK(runs.size() == 2);
  CHECK(runs.closed == 0);
  const std::string bytes = content(place.path() + "/runs.csv");
  CHECK(bytes.find("unseen") == std::string::npos);
  CHECK(bytes.find("seen") != std::string::npos);
  CHECK(fs::status(place.path() + "/runs.csv").permissions() == fs::perms(0644));
  // Closed later, while runs.csv has it.
  fs::permissions(hidden.folder(), fs::perms(0755));
  fs::permissions(hidden.folder() + "/record", fs::perms(0755));
  for (const auto& file : fs::directory_iterator(hidden.folder() + "/record"))
    fs::permissions(file.path(), fs::perms(0644));
  read(place.path());
  CHECK(content(place.path() + "/runs.csv").find("unseen") != std::string::npos);
  fs::permissions(hidden.folder(), fs::perms(0700));
  CHECK(read(place.path()).size() == 2);
  CHECK(content(place.path() + "/runs.csv").find("unseen") == std::string::npos);
  // Where nobody else may enter, nothing is hidden.
  fs::permissions(place.path(), fs::perms(0700));
  read(place.path());
  CHECK(content(place.path() + "/runs.csv").find("unseen") != std::string::npos);
}

TEST_CASE("registry: a run that its owner keeps to itself is counted, and is no fault") {
  if (::geteuid() != 0) return;  // only root can be two users
  const zs::TemporaryFolder place;
  fs::permissions(place.path(), fs::perms(0755));
  Run::create(place.path(), "public", {});
  fs::permissions(Run::create(place.path(), "private", {}).folder(), fs::perms(0700));
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(9);
    int faults = 0;
    const Runs runs = read_runs(place.path(), [&](const zs::Fault&) { ++faults; });
    ::_exit(runs.size() == 1 && runs.closed == 1 && faults == 0 ? 0 : 1);
  }
  int status = 1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("registry: where others' files may not be replaced, nothing is left behind") {
  if (::geteuid() != 0) return;
  const zs::TemporaryFolder place;
  fs::permissions(place.path(), fs::perms(01777));
  Run::create(place.path(), "a", {});
  const auto entries = [&] { return std::distance(fs::directory_iterator(place.path()), fs::directory_iterator()); };
  const auto before = entries();
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(9);
    Run::create(place.path(), "b", {});
    ::_exit(read_runs(place.path(), [](const zs::Fault&) {}).size() == 2 ? 0 : 1);
  }
  int status = 1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(entries() == before + 1);
}

TEST_CASE("registry: names are one line, secrets have no place in a record") {
  const zs::TemporaryFolder place;
  CHECK_THROWS_AS(Run::create(place.path(), "x\nEpoch 1, Step 9, Loss: 0", {}), zs::Error);
  CHECK_THROWS_AS(Run::create(place.path(), "x", {{"a\nb", "1"}}), zs::Error);
  CHECK_THROWS_AS(Run::create(place.path(), "x", {{"wandb_api_key", "1"}}), zs::Error);
  CHECK(read(place.path() + "/.").size() == 0);
  const auto config = zs::config::Config::parse("wandb: {api_key: s3cret, project: p}\n", "c.yaml");
  const Run run = Run::create(place.path(), config, {});
  CHECK(zs::registry::value(read_record(run.folder()), "wandb.api_key") == "(withheld)");
  CHECK(zs::registry::value(read_record(run.folder()), "wandb.project") == "p");
}

TEST_CASE("sheet: in a CSV no text is a formula, and numbers stay numbers") {
  CHECK(csv_cell("=cmd|'/C calc'!A0") == "'=cmd|'/C calc'!A0");
  CHECK(csv_cell("@x") == "'@x");
  CHECK(csv_cell("--set a,b") == "\"'--set a,b\"");
  for (const char* const number : {"-0.5", "+1e-3", "-inf", "7"}) CHECK(csv_cell(number) == number);
}

TEST_CASE("sheet: a CSV steers no terminal; lines and tabs stay data") {
  CHECK(csv_cell("a\x1b[31mb\x7f\r") == "a\\x1B[31mb\\x7F\\r");
  CHECK(csv_cell("\xc2\x9b"
                 "2J\xff") == "\\u009B2J\\xFF");
  CHECK(csv_cell("one\ntwo\tthree \xc3\xa9") == "\"one\ntwo\tthree \xc3\xa9\"");
}

TEST_CASE("registry: a configuration of many keys is recorded, each once") {
  std::string yaml = "sweep_name: s\nmine:\n";
  for (int key = 0; key < 30000; ++key) yaml += "  k" + std::to_string(key) + ": 1\n";
  const auto fields = settings(zs::config::Config::parse(yaml, "c.yaml"));
  CHECK(fields.size() == 30001);
  CHECK(zs::registry::value(fields, "sweep_name") == "s");
  CHECK(zs::registry::value(fields, "mine.k29999") == "1");
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
  const std::string missing = place.path() + "/none";
  CHECK_THROWS_WITH_AS(read(missing),
                       (missing + ": no such registry; a training makes it, --registry names another").c_str(),
                       zs::Error);
}

TEST_CASE("registry: what killed writers left is cleared away when it is old, nothing else") {
  const zs::TemporaryFolder place;
  const Run run = Run::create(place.path(), "a", {});
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(2);
  const std::vector<std::string> left = {place.path() + "/.zs-tmp-abcdefghjkmn", place.path() + "/.removed_x_abc",
                                         run.folder() + "/.zs-tmp-abcdefghjkmn"};
  const std::vector<std::string> kept = {place.path() + "/.notes", run.folder() + "/.hidden"};
  for (const auto& names : {left, kept}) {
    for (const std::string& name : names) {
      std::ofstream(name) << "x";
      fs::last_write_time(name, old);
    }
  }
  std::ofstream(place.path() + "/.zs-tmp-222222222222") << "of a writer at work";
  tidy(place.path());
  for (const std::string& name : left) CHECK_MESSAGE(!fs::exists(name), name);
  for (const std::string& name : kept) CHECK_MESSAGE(fs::exists(name), name);
  CHECK(fs::exists(place.path() + "/.zs-tmp-222222222222"));
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

TEST_CASE("registry: what columns hold, worked out by hand") {
  const Sheet whole = statistics({{"run_id", "model.name", "loss", "empty", "seed"},
                                  {{"1", "gpt2", "4", "", "1"},
                                   {"2", "gpt2", "1", "", "1"},
                                   {"3", "tiny", "nan", "", "2"},
                                   {"4", "", "2.5", "", "2"}}});
  REQUIRE(whole.header == std::vector<std::string>{"column", "runs", "values", "mean", "std", "min", "25%", "50%",
                                                   "75%", "max", "not_finite", "which"});
  REQUIRE(whole.rows.size() == 3);
  CHECK(whole.rows[0] ==
        std::vector<std::string>{"model.name", "3", "2", "", "", "", "", "", "", "", "", "gpt2 (2), tiny (1)"});
  CHECK(whole.rows[1] ==
        std::vector<std::string>{"loss", "4", "3", "2.5", "1.5", "1", "1.75", "2.5", "3.25", "4", "1", ""});
  CHECK(whole.rows[2].back() == "1 (2), 2 (2)");
}

}  // namespace zs::registry
