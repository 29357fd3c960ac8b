// SPDX-License-Identifier: Apache-2.0
#include "metric/tsv_writer.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "metric/file.hpp"

namespace zs::metric {
namespace {

struct Written {
  std::string text;
  TsvWriter writer;
  std::vector<ColumnInfo> columns;

  explicit Written(std::size_t hold = 0, std::size_t block = 0)
      : writer([this](std::string_view piece) { text += piece; }, hold, block) {}

  void run(const std::string& name) {
    writer.run(name);
    columns.clear();
  }
  void column(const std::string& name, Type type = Type::real, const std::string& unit = "") {
    const Standard* const usual = standard(name);
    columns.push_back(usual ? ColumnInfo{name, usual->type, std::string(usual->unit)} : ColumnInfo{name, type, unit});
    writer.columns(columns);
  }
  void row(std::vector<std::string_view> cells) { writer.row(cells); }
};

/// A stream of three runs, whose columns and attributes come up late.
std::string late(std::size_t hold, std::size_t block) {
  Written w(hold, block);
  w.run("a");
  w.writer.attribute("seed", "1");
  w.column("step");
  w.column("loss");
  w.row({"1", "2.5"});
  w.column("mfu", Type::real, "%");
  w.row({"2", "2.25", "50"});
  w.run("empty");
  w.run("c");
  w.column("loss");
  w.row({"1"});
  w.writer.attribute("exit_code", "0");
  w.writer.flush();
  return w.text;
}

}  // namespace

TEST_CASE("what comes up late stands in front while rows are held, else in a continued section") {
  const std::string passed_on = late(0, 0), held = late(1000, 1000);
  CHECK(passed_on ==
        "#zs-metrics 1\n#@ a seed=1\nrun\tstep\tloss\na\t1\t2.5\n"
        "#zs-metrics 1 continued\n#: mfu real %\nrun\tstep\tloss\tmfu\na\t2\t2.25\t50\n"
        "#zs-metrics 1 continued\n#@ empty\n"
        "#zs-metrics 1 continued\nrun\tloss\nc\t1\n#@ c exit_code=0\n");
  CHECK(held ==
        "#zs-metrics 1\n#@ a seed=1\n#: mfu real %\nrun\tstep\tloss\tmfu\na\t1\t2.5\t\na\t2\t2.25\t50\n"
        "#zs-metrics 1 continued\n#@ empty\n"
        "#zs-metrics 1 continued\n#@ c exit_code=0\nrun\tloss\nc\t1\n");
  const Store store = parse(passed_on, "stdin");
  REQUIRE(store.runs.size() == 3);
  CHECK(store.runs[0].records.rows() == 2);
  CHECK(store.runs[1].name == "empty");
  CHECK(store.runs[2].attribute("exit_code") == "0");
  CHECK(to_h5(store) == to_h5(parse(held, "stdin")));
}

TEST_CASE("a column that changes its type between runs gets a header of its own") {
  Run a{"a", {}, {}}, b{"b", {}, {}};
  a.records.column("x", Type::integer).integers() = {1};
  b.records.column("x", Type::text).texts() = {"1"};
  const Store back = parse(to_tsv({a, b}), "stdin");
  CHECK(back.runs[0].records.find("x")->type() == Type::integer);
  CHECK(back.runs[1].records.find("x")->type() == Type::text);
}

TEST_CASE("records without a value keep their place") {
  Written w;
  w.run("a");
  w.row({});
  w.column("loss");
  w.row({"2"});
  w.writer.flush();
  CHECK(w.text == "#zs-metrics 1\nrun\na\n#zs-metrics 1 continued\nrun\tloss\na\t2\n");
  const Store store = parse(w.text, "stdin");
  CHECK(store.runs[0].records.rows() == 2);
  CHECK(store.runs[0].records.find("loss")->absent(0));
}

TEST_CASE("nothing but a run, and nothing at all, are streams that can be read") {
  Written none, one;
  none.writer.flush();
  CHECK(none.text == "#zs-metrics 1\n");
  CHECK(parse(none.text, "stdin").runs.empty());
  one.writer.run("a b");
  one.writer.flush();
  one.writer.flush();
  CHECK(one.text == "#zs-metrics 1\n#@ a\\sb\n");
  CHECK(parse(one.text, "stdin").runs[0].name == "a b");
}

TEST_CASE("what cannot be read back is not written") {
  Written w;
  w.run("a");
  CHECK_THROWS_WITH_AS(w.writer.run("a"), "a second run named 'a': give one another name with --run NAME", Error);
  CHECK_THROWS_AS(w.writer.run(""), Error);
  CHECK_THROWS_AS(w.column("run"), Error);
  CHECK_THROWS_AS(w.writer.attribute("", "x"), Error);
}

TEST_CASE("blocks are handed on before the end") {
  Written usual(2 << 10, 1 << 12);
  usual.run("a run");
  usual.column("step");
  usual.column("loss");
  for (int step = 0; step < 20000; ++step) {
    const std::string text = std::to_string(step);
    usual.row({text, "0.12345678901234567890123456789012"});
  }
  CHECK(usual.text.size() > 400000);
  usual.writer.flush();
  CHECK(parse(usual.text, "stdin").runs[0].records.rows() == 20000);
}

}  // namespace zs::metric
