// SPDX-License-Identifier: Apache-2.0
#include "metric/tsv_writer.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "metric/file.hpp"

using namespace zs;
using namespace zs::metric;

namespace {

struct Written {
  std::string text;
  TsvWriter writer{[this](std::string_view block) { text += block; }};

  void row(std::vector<TsvWriter::Cell> cells) { writer.row(cells); }
};

}  // namespace

TEST_CASE("a stream grows columns by continued sections, and keeps one header where it can") {
  Written w;
  w.writer.run("a");
  w.writer.attribute("seed", "1");
  w.writer.declare(Column("mfu", "%", Type::real));
  w.row({{"step", "1"}, {"loss", "2.5"}});
  w.row({{"step", "2"}, {"loss", "2.25"}, {"mfu", "50"}});
  w.row({{"loss", "2"}, {"step", "3"}});
  w.writer.run("b");
  w.row({{"step", "1"}, {"loss", "nan"}});
  w.writer.run("empty");
  w.writer.run("c");
  w.row({{"loss", "1"}, {"step", "1"}});
  w.writer.attribute("exit_code", "0");
  w.writer.flush();
  CHECK(w.text ==
        "#zs-metrics 1\n#@ a seed=1\nrun\tstep\tloss\na\t1\t2.5\n"
        "#zs-metrics 1 continued\n#: mfu real %\nrun\tstep\tloss\tmfu\na\t2\t2.25\t50\na\t3\t2\t\n"
        "b\t1\tnan\t\n#@ empty\n"
        "#zs-metrics 1 continued\nrun\tloss\tstep\nc\t1\t1\n#@ c exit_code=0\n");
  const Store store = parse(w.text, "stdin");
  REQUIRE(store.runs.size() == 4);
  CHECK(store.runs[0].records.rows() == 3);
  CHECK(store.runs[2].name == "empty");
  CHECK(store.runs[3].records.columns[0].name == "loss");
  CHECK(to_h5(parse(to_h5(store), "image")) == to_h5(store));
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
  w.writer.run("a");
  w.row({{"loss", ""}});
  w.row({{"loss", "2"}});
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
  w.writer.run("a");
  CHECK_THROWS_WITH_AS(w.writer.run("a"), "a second run named 'a': give one another name with --run NAME", Error);
  CHECK_THROWS_AS(w.writer.run(""), Error);
  CHECK_THROWS_AS(w.writer.declare(Column("run", "", Type::text)), Error);
  CHECK_THROWS_AS(w.writer.attribute("", "x"), Error);
}

TEST_CASE("blocks are handed on before the end") {
  Written w;
  w.writer.run("a");
  for (int step = 0; step < 20000; ++step) w.row({{"step", std::to_string(step)}, {"loss", "0.123456789"}});
  CHECK(w.text.size() > 200000);
  w.writer.flush();
  CHECK(parse(w.text, "stdin").runs[0].records.rows() == 20000);
}
