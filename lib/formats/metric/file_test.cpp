// SPDX-License-Identifier: Apache-2.0
#include "metric/file.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "base/error.hpp"
#include "h5/image.hpp"
#include "metric/summary_text.hpp"

namespace zs::metric {
namespace {

const std::string kTwoRuns =
    "#zs-metrics 1\n"
    "#@ a model.name=gpt2\n"
    "#@ a command=zs-train --seed 1\\tx\n"
    "#: mfu real %\n"
    "run\tstep\tloss\tmfu\n"
    "a\t10\t2.5\t\n"
    "a\t20\tnan\t12.5\n"
    "#@ a exit_code=0\n"
    "b\t10\t-inf\t\n"
    "#@ dead exit_code=1\n";

Store parsed(const std::string& text) { return parse(text, "stdin"); }
std::string h5_of(const std::string& text) { return to_h5(parsed(text)); }

TEST_CASE("any bytes of names and values come back from the text form, which steers no terminal") {
  Run run;
  run.name =
      "red\x1b[31m \xC2\x9B"
      "2J\x7F\x80=#";
  run.attributes["k\x1b"] = std::string("a\0b\r\n\t\\ \xE2\x80\xAE \xFF", 14);
  Column words("w\x07", "", Type::text);
  words.texts() = {"\x1b]0;title\a", "größe", "\xC3"};
  run.records.columns.push_back(words);
  const std::string text = to_tsv({run});
  for (const char c : text) CHECK((c == '\n' || c == '\t' || static_cast<unsigned char>(c) >= 0x20));
  CHECK(text.find("\xC2\x9B") == std::string::npos);
  CHECK(text.find("größe") != std::string::npos);
  const Run back = parse(text, "x").runs.at(0);
  CHECK(back.name == run.name);
  CHECK(back.attributes == run.attributes);
  CHECK(back.records.find("w\x07")->texts() == words.texts());
}

TEST_CASE("a summary as text holds what it holds as HDF5") {
  Store store;
  store.attributes = {{"by", "a=b c"}, {"note", "line\nline\t\x1b"}};
  Run run;
  run.name = "a run\x1b";
  run.attributes["k"] = "v";
  Column steps("step", "", Type::integer);
  steps.integers() = {1, 2};
  run.records.columns = {steps};
  store.runs = {run, Run{"empty", {{"exit_code", "1"}}, {}}};
  Column names("condition", "", Type::text), counts("n", "", Type::integer), reals("x\ty", "nats/token", Type::real);
  names.texts() = {"a run\x1b", "", "#c"};
  counts.integers() = {1, kAbsentInteger, -9};
  reals.reals() = {0.1, absent_real(), std::nan("")};
  store.summary = Table{{names, counts, reals}};
  store.tables["divergence"] = Table{};
  store.tables["other one"] = Table{{names}};
  Column none("step", "", Type::integer);
  store.curves["a run\x1b"] = Table{{steps}};
  store.curves["="] = Table{{none}};
  const std::string text = to_summary_text(store);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(to_h5(parse(text, "x")) == to_h5(store));
  CHECK(to_summary_text(parse(text, "x")) == text);
  Run more;
  more.name = "more";
  more.records.columns = {steps};
  CHECK(parse(text + to_tsv({more}), "x").runs.size() == 3);  // streams one after another
  CHECK(parse(to_tsv({more}) + text, "x").runs.size() == 3);
  CHECK(parse(to_h5({{more}, {}, {}, {}, {}}) + text, "x").summary->rows() == 3);
}

TEST_CASE("damage to a summary as text is located, or read as what it says") {
  Store store;
  Column names("condition", "", Type::text), counts("n", "", Type::integer);
  names.texts() = {"a"};
  counts.integers() = {7};
  store.summary = Table{{names, counts}};
  const std::string text = to_summary_text(store);
  const auto fails = [](const std::string& damaged, const std::string& start) {
    std::string what = "read";
    try {
      parse(damaged, "stdin");
    } catch (const Error& error) {
      what = error.what();
    }
    CHECK(what.substr(0, start.size()) == start);
  };
  fails(text.substr(0, text.find("a\t7") + 3), "stdin:6: the input is cut off here");
  const auto with = [&](const std::string& what, const std::string& by) {
    std::string damaged = text;
    return damaged.replace(damaged.find(what), what.size(), by);
  };
  fails(with("a\t7", "a"), "stdin:6: expected 2 fields as in the header, found 1");
  fails(with("a\t7", "a\t7,5"), "stdin:6: column 'n' is int, found '7,5'");
  fails(with("condition\tn", "condition\tm"), "stdin:5: a header that differs from what was declared");
  fails(with("#table summary", "#table else"), "stdin:2: expected '#table summary'");
  for (std::size_t at = 0; at < text.size(); ++at) {  // no crash
    for (const char c : {'\n', '#', 'x', '\t', '\\'}) {
      std::string damaged = text;
      damaged[at] = c;
      try {
        parse(damaged, "stdin");
      } catch (const Error&) {
      }
    }
  }
}

}  // namespace

TEST_CASE("the text form is read: attributes, types, absent cells, mixed runs, a run without rows") {
  const Store store = parsed(kTwoRuns);
  REQUIRE(store.runs.size() == 3);
  const Run& a = store.runs[0];
  CHECK(a.name == "a");
  CHECK(a.attribute("model.name") == "gpt2");
  CHECK(a.attribute("command") == "zs-train --seed 1\tx");
  CHECK(a.attribute("exit_code") == "0");
  CHECK(a.records.rows() == 2);
  CHECK(a.records.find("step")->integers() == std::vector<std::int64_t>{10, 20});
  CHECK(std::isnan(a.records.find("loss")->reals()[1]));
  CHECK_FALSE(a.records.find("loss")->absent(1));
  CHECK(a.records.find("mfu")->absent(0));
  CHECK(a.records.find("mfu")->unit == "%");
  CHECK(store.runs[1].records.find("loss")->reals()[0] == -INFINITY);
  CHECK(store.runs[1].records.find("mfu") == nullptr);
  CHECK(store.runs[2].name == "dead");
  CHECK(store.runs[2].records.rows() == 0);
}

TEST_CASE("text to HDF5 and back is the same content, and the same bytes from either form") {
  const std::string image = h5_of(kTwoRuns);
  CHECK(h5_of(image) == image);
  const std::string text = to_tsv(parsed(image).runs);
  CHECK(text == to_tsv(parsed(kTwoRuns).runs));
  CHECK(h5_of(text) == image);
}

TEST_CASE("streams may be concatenated, in either form") {
  const std::string one = "#zs-metrics 1\nrun\tstep\na\t1\n", two = "#zs-metrics 1\nrun\tloss\nb\t2\n";
  const std::string both = to_h5(parsed(one + two));
  CHECK(parsed(both).runs.size() == 2);
  CHECK(to_h5(parsed(h5_of(one) + h5_of(two))) == both);
  CHECK(to_h5(parsed(one + h5_of(two))) == both);
  CHECK(to_h5(parsed(h5_of(one) + two)) == both);
}

TEST_CASE("two runs of one name are an error with the place and the remedy") {
  const std::string one = "#zs-metrics 1\nrun\tstep\na\t1\n";
  CHECK_THROWS_WITH_AS(parsed(one + one),
                       "stdin:6: a second run named 'a': give one another name with zs-parse --run NAME", Error);
  CHECK_THROWS_WITH_AS(parsed(h5_of(one) + one), doctest::Contains("stdin:3: a second run named 'a'"), Error);
  CHECK_THROWS_WITH_AS(parsed(one + h5_of(one)), doctest::Contains("stdin: a second run named 'a'"), Error);
  const Store continued = parsed(one + "#zs-metrics 1 continued\nrun\tstep\tloss\na\t2\t0.5\n");
  CHECK(continued.runs[0].records.rows() == 2);
  CHECK(continued.runs[0].records.find("loss")->absent(0));
}

TEST_CASE("columns that nobody declared get the type of their values") {
  const Store store = parsed("#zs-metrics 1\nrun\ti\tr\tt\tmixed\na\t1\t2\tx\t1\na\t\tnan\t7\t2.5\n");
  const Table& table = store.runs[0].records;
  CHECK(table.find("i")->type() == Type::integer);
  CHECK(table.find("r")->type() == Type::real);
  CHECK(table.find("t")->type() == Type::text);
  CHECK(table.find("mixed")->type() == Type::real);
  const Store later = parsed("#zs-metrics 1\nrun\tx\na\t1\n#zs-metrics 1 continued\nrun\tx\ty\na\t1.5\t3\n");
  CHECK(later.runs[0].records.find("x")->type() == Type::real);
}

TEST_CASE("sorted text, text without comments and a run named run are read") {
  const Store sorted = parsed("#: mfu real\n#@ run seed=1\n#zs-metrics 1\nrun\t1\t2.5\nrun\t2\t2\nrun\tstep\tmfu\n");
  CHECK(sorted.runs.size() == 1);
  CHECK(sorted.runs[0].attribute("seed") == "1");
  CHECK(sorted.runs[0].records.find("mfu")->reals() == std::vector<double>{2.5, 2});
  CHECK(parsed("run\tstep\nrun\t1\n").runs[0].records.rows() == 1);
  CHECK(parsed("run\tstep\r\nrun\t1\r\n").runs[0].records.rows() == 1);
}

TEST_CASE("names with blanks, '=', '/', '#' and tabs survive both forms") {
  Run run{"#a b/c=d\t%", {{"a key=x", "v = w\n\\"}}, {}};
  run.records.column("odd/name of", Type::text, "a unit").texts() = {"", "a\tb", "#c"};
  const Store from_text = parsed(to_tsv({run}));
  const Store from_h5 = parsed(to_h5({{run}, {}, {}, {}, {}}));
  for (const Store& store : {from_text, from_h5}) {
    REQUIRE(store.runs.size() == 1);
    CHECK(store.runs[0].name == run.name);
    CHECK(store.runs[0].attributes == run.attributes);
    REQUIRE(store.runs[0].records.find("odd/name of"));
    CHECK(store.runs[0].records.find("odd/name of")->texts() == run.records.columns[0].texts());
    CHECK(store.runs[0].records.find("odd/name of")->unit == "a unit");
  }
}

TEST_CASE("a summary with its curves and tables survives") {
  Store store;
  store.attributes = {{"by", "run"}, {"warmup", "5"}};
  store.summary.emplace();
  store.summary->column("condition", Type::text).texts() = {"z/3", "z1"};
  store.summary->column("time_mean", Type::real, "s").reals() = {absent_real(), 0.5};
  store.curves["z/3"].column("step").integers() = {1, 2};
  store.tables["divergence"].column("a", Type::text).texts() = {"z1"};
  const Store back = parsed(to_h5(store));
  CHECK(back.attributes == store.attributes);
  CHECK(back.summary->find("condition")->texts() == store.summary->find("condition")->texts());
  CHECK(back.summary->find("time_mean")->absent(0));
  CHECK(back.summary->find("time_mean")->unit == "s");
  CHECK(back.curves.at("z/3").find("step")->integers() == std::vector<std::int64_t>{1, 2});
  CHECK(back.tables.at("divergence").rows() == 1);
  CHECK(to_h5(back) == to_h5(store));
  CHECK_THROWS_WITH_AS(parsed(to_h5(store) + to_h5(store)), "stdin: a second condition named 'z/3'", Error);
}

TEST_CASE("malformed text is an error with its line") {
  const auto fails = [](const std::string& text, const char* message) {
    CHECK_THROWS_WITH_AS(parsed(text), doctest::Contains(message), Error);
  };
  fails("", "stdin: is empty, expected metric records");
  fails("Epoch 1, Step 10, Loss: 2\n", "stdin: no metric records: expected '#zs-metrics 1' or HDF5 data");
  fails("#zs-metrics 2\n", "stdin:1: metric format '2' is not known here");
  fails("#zs-metrics 1\na\t1\n", "stdin:2: a row without a header line");
  fails("#zs-metrics 1\nrun\tstep\na\t1\t2\n", "stdin:3: expected 2 fields as in the header, found 3");
  fails("#zs-metrics 1\nrun\tstep\na\tx\n", "stdin:3: column 'step' is int, found 'x'");
  fails("#zs-metrics 1\nrun\tstep\na\t1.5\n", "stdin:3: column 'step' is int, found '1.5'");
  fails("#zs-metrics 1\nrun\tstep\tstep\n", "stdin:2: column 'step' stands twice in the header");
  fails("#zs-metrics 1\nrun\tstep\n\t1\n", "stdin:3: a run without a name");
  fails("#zs-metrics 1\n#@ a seed\n", "stdin:2: expected '#@ RUN KEY=VALUE'");
  fails("#zs-metrics 1\n#: mfu number\n", "stdin:2: expected '#: COLUMN int|real|text [UNIT]'");
  fails("#zs-metrics 1\nrun\tx\na\t\\q\n", "stdin:3: unknown escape in '\\q'");
  fails(std::string("#zs-metrics 1\nrun\tx\na\t\0\n", 23), "stdin:3: a NUL byte: this is not text");
  fails("#zs-metrics 1\n#: x int\nrun\tx\na\t1\n#zs-metrics 1 continued\n#: x text\nrun\tx\na\ty\n",
        "stdin:8: column 'x' of run 'a' was int and is now text");
}

TEST_CASE("a stream that was cut off is an error wherever the cut is") {
  const std::string text = "#zs-metrics 1\n#@ a seed=1\nrun\tstep\tloss\na\t1\t2.25\n";
  const auto complete = [&](std::size_t size) { return text[size - 1] == '\n'; };
  for (std::size_t size = 1; size <= text.size(); ++size) {
    if (complete(size))
      CHECK_NOTHROW(parsed(text.substr(0, size)));
    else
      CHECK_THROWS_AS(parsed(text.substr(0, size)), Error);
  }
  CHECK_THROWS_WITH_AS(parsed(text + "a\t2"), doctest::Contains("stdin:5: the input is cut off here (2 of 3 fields"),
                       Error);
  const std::string image = h5_of(text);
  for (std::size_t size = 1; size < image.size(); size += 7) CHECK_THROWS_AS(parsed(image.substr(0, size)), Error);
}

TEST_CASE("no damage to an image makes the reader crash") {
  const std::string sound = h5_of(kTwoRuns);
  const std::string content = to_tsv(parsed(sound).runs);
  std::uint32_t state = 1;
  int unseen = 0;
  for (int round = 0; round < 1500; ++round) {
    std::string bytes = sound;
    for (int flips = 0; flips <= round % 3; ++flips) {
      state = state * 1664525 + 1013904223;
      bytes[(state >> 8) % bytes.size()] = static_cast<char>(state >> 3);
    }
    try {
      unseen += to_tsv(parsed(bytes).runs) != content;
    } catch (const Error&) {
    }
  }
  CHECK(unseen == 0);
}

TEST_CASE("jsonl: one object a record, absent cells left out, non-finite numbers as strings") {
  CHECK(to_jsonl(parsed(kTwoRuns).runs) ==
        "{\"run\":\"a\",\"step\":10,\"loss\":2.5}\n"
        "{\"run\":\"a\",\"step\":20,\"loss\":\"nan\",\"mfu\":12.5}\n"
        "{\"run\":\"b\",\"step\":10,\"loss\":\"-inf\"}\n");
}

}  // namespace zs::metric
