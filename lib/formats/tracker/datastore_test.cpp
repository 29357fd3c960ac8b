// SPDX-License-Identifier: Apache-2.0
#include "tracker/datastore.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "base/file.hpp"
#include "base/folder.hpp"
#include "tracker/wandb.hpp"

namespace zs::tracker {
namespace {

struct Records {
  std::vector<std::string> records, faults;
};

Records read_records(std::string_view bytes) {
  Records reading;
  read_datastore(
      bytes, "f", [&](std::string_view record, std::int64_t) { reading.records.emplace_back(record); },
      [&](const Fault& fault) { reading.faults.push_back(fault.what); });
  return reading;
}

TEST_CASE("datastore: records of every size around the blocks come back") {
  std::vector<std::string> records;
  for (const std::size_t size : {0, 1, 32740, 32747, 32754, 32761, 32768, 100000, 3})
    records.emplace_back(size, static_cast<char>('a' + records.size()));
  Datastore store;
  std::string bytes = Datastore::header();
  for (const std::string& record : records) bytes += store.add(record);
  const Records reading = read_records(bytes);
  CHECK(reading.faults.empty());
  CHECK(reading.records == records);
}

TEST_CASE("datastore: each place in a block where a record may begin") {
  for (std::size_t left = 0; left < 20; ++left) {
    Datastore store;
    const std::string fill(32768 - 7 - 7 - left, 'x');  // header and its own chunk before it
    std::string bytes = Datastore::header() + store.add(fill);
    bytes += store.add("record");
    const Records reading = read_records(bytes);
    REQUIRE(reading.faults.empty());
    REQUIRE(reading.records == std::vector<std::string>{fill, "record"});
  }
}

TEST_CASE("datastore: torn at every byte, or with one wrong, what is whole is kept, and the rest is a fault") {
  Datastore store;
  std::string bytes = Datastore::header();
  std::vector<std::size_t> ends = {bytes.size()};
  std::vector<std::string> records;
  for (int i = 0; i < 4; ++i) {
    records.push_back(std::string(static_cast<std::size_t>(10 * i + 1), static_cast<char>('a' + i)));
    bytes += store.add(records.back());
    ends.push_back(bytes.size());
  }
  for (std::size_t size = 1; size <= bytes.size(); ++size) {
    const Records reading = read_records(std::string_view(bytes).substr(0, size));
    std::size_t whole = 0;
    while (whole + 1 < ends.size() && ends[whole + 1] <= size) ++whole;
    REQUIRE(reading.records.size() == (size < ends[0] ? 0 : whole));
    REQUIRE(reading.faults.size() == (size >= ends[0] && ends[whole] == size ? 0 : 1));
  }
  for (std::size_t at = ends[0]; at < bytes.size(); ++at) {
    std::string wrong = bytes;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x10);
    const Records reading = read_records(wrong);
    REQUIRE(reading.faults.size() >= 1);
    for (const std::string& record : reading.records)
      REQUIRE(std::find(records.begin(), records.end(), record) != records.end());
  }
  CHECK_THROWS_AS(read_records("text"), Error);
}

TEST_CASE("datastore: damage costs one block") {
  Datastore store;
  std::string bytes = Datastore::header();
  for (int i = 0; i < 3000; ++i) bytes += store.add(std::to_string(i) + std::string(100, 'x'));
  bytes[40000] ^= 1;
  const Records reading = read_records(bytes);
  CHECK(reading.faults.size() <= 2);
  CHECK(reading.records.size() > 2600);
  CHECK(reading.records.size() < 3000);
  CHECK(reading.records.back() == "2999" + std::string(100, 'x'));
}

TEST_CASE("wandb: a run's folder holds what a training told, without secrets, and a killed one ends at its last row") {
  const TemporaryFolder folder;
  const std::vector<metric::ColumnInfo> columns = {
      {"step", metric::Type::integer, ""}, {"loss", metric::Type::real, ""}, {"state_digest", metric::Type::text, ""}};
  WandbWriter writer({.place = folder.path(), .project = "p", .tags = {"a", "b"}});
  writer.output("first line");
  writer.begin("r", {{"seed", "7"}, {"hub.token", "s3cret"}, {"model.name", "gpt2"}});
  writer.row(columns, {"1", "nan", "00"});
  const std::string path = writer.folder() + "/run-" + writer.id() + ".wandb";
  const auto records = [&] {
    std::vector<WandbRecord> read;
    for (const std::string& record : read_records(Input(path).read_all()).records) read.push_back(wandb_record(record));
    return read;
  };
  using Kind = WandbRecord::Kind;
  CHECK(records().back().kind == Kind::history);  // as after kill -9
  writer.row(columns, {"2", "0.5", ""});
  writer.finish({{"state_digest", "ff"}});
  writer.close(1);
  const auto written = records();
  REQUIRE(written.size() == 9);
  for (std::size_t i = 0; i < written.size(); ++i) CHECK(written[i].number == static_cast<std::int64_t>(i) + 1);
  const WandbRecord& run = written[1];
  CHECK(run.kind == Kind::run);
  CHECK(run.id == writer.id());
  CHECK(run.project == "p");
  CHECK(run.tags == std::vector<std::string>{"a", "b"});
  REQUIRE(run.items.size() == 3);
  CHECK(run.items[0].json == "\"(withheld)\"");
  CHECK(written[2].line == "first line\n");
  CHECK(written[3].items.at(0).key == "train/global_step");
  CHECK(written[3].items.at(1).json == "NaN");
  CHECK(written[3].items.at(2).json == "\"00\"");
  CHECK(written[4].step == 2);
  CHECK(written[5].kind == Kind::summary);
  CHECK(written[6].kind == Kind::exit);
  CHECK(written[6].exit_code == 1);
  CHECK(written[7].kind == Kind::final);  // empty messages, which must be there
  CHECK(written[8].kind == Kind::footer);
  CHECK(Input(path).read_all().find("s3cret") == std::string::npos);
  // The run goes on: its file is written anew, with what was known.
  WandbWriter again({.place = folder.path(), .project = "p", .id = writer.id(), .folder = writer.folder()});
  again.begin("r", {});
  again.row(columns, {"1", "nan", ""});
  CHECK(records().back().step == 1);
}

}  // namespace
}  // namespace zs::tracker
