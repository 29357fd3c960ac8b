// SPDX-License-Identifier: Apache-2.0
#include "metric/writer.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "metric/file.hpp"
#include "metric/jsonl_writer.hpp"

namespace zs::metric {
namespace {

/// Three steps of a training, with a column that comes up late, a nan, and an absent cell.
Run made() {
  Run run{"r", {{"seed", "7"}, {"state_digest", "00ff"}}, {}};
  Table& records = run.records;
  for (std::int64_t step = 1; step <= 3; ++step) {
    records.column("step").integers().push_back(step);
    records.column("loss").reals().push_back(step == 2 ? std::nan("") : 1.0 / static_cast<double>(3 * step));
    if (step == 2) records.column("note", Type::text), records.even_out();
    if (step == 3) records.column("note").texts().push_back("a\tb");
  }
  records.even_out();
  return run;
}

/// Gives `run` to each of `writers`, as a training does.
void train(const Run& run, const std::vector<Writer*>& writers) {
  for (Writer* const writer : writers) {
    writer->begin(run.name, {{"seed", "7"}});
    for (std::size_t row = 0; row < run.records.rows(); ++row) {
      write_row(run.records, row, *writer);
      writer->flush(row == 0);
    }
    writer->finish(run.attributes);
  }
}

TEST_CASE("writer: the same rows go to any number of places, and each has all of them") {
  const TemporaryFolder folder;
  const std::string path = folder.file("metrics.h5");
  Run run = made();
  run.attributes.insert({{"hub.token", "s3cret"}, {"url", "postgres://u:s3cret@h"}});
  std::string text;
  TsvWriter tsv([&](std::string_view block) { text += block; });
  Run memory;
  {
    Output jsonl(folder.file("metrics.jsonl"));
    TextWriter first(tsv);
    MemoryWriter second(memory);
    JsonlWriter third(jsonl);
    FileWriter fourth(path);
    train(run, {&first, &second, &third, &fourth});
    jsonl.commit();
  }
  const std::string expected = to_tsv({run});
  CHECK(to_tsv(parse(text, "text").runs) == expected);
  CHECK(to_tsv({memory}) == expected);
  CHECK(to_tsv(read(path).runs) == expected);
  CHECK(to_tsv(read(folder.path()).runs) == expected);  // a training's folder
  CHECK(Input(folder.file("metrics.jsonl")).read_all() == to_jsonl({run}));
  // No file holds a secret.
  for (const std::string& written : {text, Input(path).read_all(), Input(folder.file("metrics.jsonl")).read_all()})
    CHECK(written.find("s3cret") == std::string::npos);
  CHECK(text.find("url=postgres://u:(withheld)@h") != std::string::npos);
}

TEST_CASE("writer: the file is there, complete, from the first flush that asks for it") {
  const TemporaryFolder folder;
  const Run run = made();
  FileWriter writer(folder.file("metrics.h5"));
  writer.begin("r", {{"seed", "7"}});
  CHECK(file_in(folder.path()).empty());
  for (std::size_t row = 0; row < 3; ++row) {
    write_row(run.records, row, writer);
    writer.flush(true);
    const Run found = read(folder.path()).runs.at(0);
    CHECK(found.records.rows() == row + 1);
    CHECK(found.attribute("seed") == "7");
    CHECK(found.attribute("state_digest").empty());
  }
  CHECK_THROWS_AS(FileWriter(folder.file("none/metrics.h5")).flush(true), Error);
}

}  // namespace
}  // namespace zs::metric
