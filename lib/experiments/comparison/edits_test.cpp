// SPDX-License-Identifier: Apache-2.0
// Edits of real runs: each cell, row, column and attribute of metric files in both forms, of summaries, and of
// runs.csv.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "attribute/table.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "compare/pairs_test.hpp"
#include "compare/records.hpp"
#include "comparison/two_runs.hpp"
#include "config/config.hpp"
#include "metric/file.hpp"
#include "metric/summary_text.hpp"
#include "registry/listing.hpp"
#include "registry/run.hpp"
#include "registry/runs.hpp"
#include "stat/summary.hpp"

namespace zs::comparison {
namespace {

namespace fs = std::filesystem;
using metric::Column;
using metric::Run;
using metric::Type;

Recorded recorded(const std::string& path) { return read_recorded(input::named(path, "", "zs-verify")); }

/// Rebuilds the column with another text in one row. False if the text is of another type.
bool put(Column& column, std::size_t row, const std::string& text) {
  Column made(column.name, column.unit, column.type());
  for (std::size_t i = 0; i < column.size(); ++i) {
    if (!made.append(i == row ? text : column.text(i))) return false;
  }
  column = std::move(made);
  return true;
}

/// A run, as a training's log has it, with what a training of zs records beside it.
Run real_run(const std::string& log) {
  Run run = recorded("tests/cases/zs-parse/" + log + "/run.log").run;
  run.name = "r";
  for (const char* const source : {"source", "source_sha256"}) run.attributes.erase(source);
  for (Column& column : run.records.columns) {  // a value that is not finite is a failure already
    for (std::size_t row = 0; row < column.size(); ++row) {
      if (column.type() == Type::real && !column.absent(row) && !std::isfinite(column.reals()[row]))
        put(column, row, "2.5");
    }
  }
  run.attributes["state_digest"] = "00112233445566778899aabbccddeeff";
  return run;
}

std::string far(const Column& column, std::size_t row) {
  if (column.absent(row)) return column.type() == Type::text ? "x" : "1";
  if (column.type() == Type::integer) return std::to_string(column.integers()[row] + 1);
  if (column.type() == Type::text) return column.text(row) + "x";
  const double value = column.reals()[row];
  return fmt::format("{}", value == 0 ? 0.5 : value * 1.5);
}

using Change = std::function<bool(Run&)>;
struct Edit {
  std::string place, operation;
  Change apply;
};

/// All edits of a run: of each cell, row, column and attribute.
std::vector<Edit> edits_of(const Run& run) {
  std::vector<Edit> edits;
  const metric::Table& table = run.records;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Column& column = table.columns[c];
    const auto cell = [&](const std::string& operation, std::size_t row, auto&& text) {
      edits.push_back({"column " + column.name, operation, [=](Run& edited) {
                         Column& at = edited.records.columns[c];
                         const std::string now = text(at);
                         return now != at.text(row) && put(at, row, now);
                       }});
    };
    for (std::size_t row = 0; row < table.rows(); ++row) {
      cell("changed", row, [row](const Column& at) { return far(at, row); });
      cell("dropped", row, [](const Column&) { return std::string(); });
      if (row + 1 < table.rows()) cell("of the next row", row, [row](const Column& at) { return at.text(row + 1); });
      if (column.type() != Type::real) continue;
      cell("by one ulp", row,
           [row](const Column& at) { return fmt::format("{}", std::nextafter(at.reals()[row], 1e300)); });
      cell("nan", row, [](const Column&) { return std::string("nan"); });
    }
    edits.push_back({"column " + column.name, "column dropped", [=](Run& edited) {
                       edited.records.columns.erase(edited.records.columns.begin() + static_cast<std::ptrdiff_t>(c));
                       return true;
                     }});
    edits.push_back({"column " + column.name, "column renamed",
                     [=](Run& edited) { return edited.records.columns[c].name += "_x", true; }});
  }
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto rows = [&](const std::string& operation, auto&& list) {
      edits.push_back({"row", operation, [=](Run& edited) {
                         for (Column& column : edited.records.columns) {
                           Column made(column.name, column.unit, column.type());
                           for (const std::size_t i : list(column.size())) made.append(column.text(i));
                           column = std::move(made);
                         }
                         return true;
                       }});
    };
    const auto counted = [](std::size_t size) {
      std::vector<std::size_t> list(size);
      for (std::size_t i = 0; i < size; ++i) list[i] = i;
      return list;
    };
    rows("dropped", [=](std::size_t size) {
      auto list = counted(size);
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(row));
      return list;
    });
    rows("doubled", [=](std::size_t size) {
      auto list = counted(size);
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(row), row);
      return list;
    });
    if (row + 1 < table.rows())
      rows("swapped with the next", [=](std::size_t size) {
        auto list = counted(size);
        std::swap(list[row], list[row + 1]);
        return list;
      });
  }
  for (const auto& [name, value] : run.attributes) {
    edits.push_back({"attribute " + name, "changed", [name = name](Run& edited) {
                       std::string& text = edited.attributes[name];
                       return text += text.find_first_not_of("0123456789") == std::string::npos ? "1" : "x", true;
                     }});
    edits.push_back(
        {"attribute " + name, "dropped", [name = name](Run& edited) { return edited.attributes.erase(name) > 0; }});
  }
  return edits;
}

/// Why an edit may go unnoticed; "" if it may not.
std::string reason_for(const Edit& edit) {
  using attribute::Role;
  const std::size_t blank = edit.place.find(' ');
  const std::string name = blank == std::string::npos ? "" : edit.place.substr(blank + 1);
  if (edit.place.starts_with("attribute ")) {
    const attribute::Attribute* const row = attribute::find(name);
    if (name == "state_digest") return "";
    if (edit.operation == "dropped") return "an attribute of one run alone is unknown for the other";
    const Role role = attribute::role(name);
    if (role == Role::identity) return "identity is never compared";
    if (role == Role::measurement) return "a measurement differs from run to run";
    if (role == Role::layout || role == Role::arithmetic) return "equal bits of another layout are what is asked for";
    if (row && row->place) return "a name or a folder: its content counts";
    return "";
  }
  if (edit.place.starts_with("column ")) {
    const auto& decided = compare::decided();
    if (edit.operation == "dropped" && name == "rank") return "a row without a rank is of the lowest";
    if (edit.operation == "dropped" && name == "epoch") return "a row without an epoch is of the last";
    if (name == "step" || name == "epoch" || name == "rank") return "";
    if (std::find(decided.begin(), decided.end(), name) == decided.end())
      return "a measurement differs from run to run, and an unknown column is not known to be determined";
  }
  if (edit.place == "row" && edit.operation == "swapped with the next") return "rows are found by step and rank";
  if (edit.place == "row" && edit.operation == "doubled") return "a restarted log repeats a step: with the same values";
  return "";
}

}  // namespace

TEST_CASE("edits: each edit of a run's metric file is noticed") {
  const TemporaryFolder folder;
  int tried = 0, passed = 0;
  std::map<std::string, int> reasons;
  for (const char* const log : {"reference", "ranks", "zs-train", "wandb-console"}) {
    Run run = real_run(log);
    if (std::string(log) == "ranks") {  // further rows repeat a step
      for (Column& column : run.records.columns) column.truncate(8);
    }
    const auto write = [&](const char* name, const Run& written, bool hdf5) {
      metric::Store store;
      store.runs = {written};
      std::ofstream(folder.file(name), std::ios::binary) << (hdf5 ? metric::to_h5(store) : metric::to_tsv(store.runs));
    };
    write("a", run, true), write("b", run, false);
    const Recorded a = recorded(folder.file("a"));
    const compare::Settled usual = compare_runs(a, recorded(folder.file("b")), {}).verdict;
    REQUIRE_MESSAGE(compare::equal(usual), std::string(log) << ": " << compare::name(usual));
    for (const Edit& edit : edits_of(run)) {
      Run edited = run;
      if (!edit.apply(edited)) continue;
      const std::string what = std::string(log) + ": " + edit.place + ": " + edit.operation;
      for (const bool hdf5 : {false, true}) {
        write("b", edited, hdf5);
        ++tried;
        std::string said;
        bool noticed = true;
        try {
          const Answer answer = compare_runs(a, recorded(folder.file("b")), {});
          said = compare::name(answer.verdict);
          noticed = !compare::equal(answer.verdict);
        } catch (const Error& error) {
          said = error.what();
        }
        if (noticed) continue;
        const std::string reason = reason_for(edit);
        ++reasons[reason];
        passed += reason.empty();
        CHECK_MESSAGE(!reason.empty(), what << ": " << said);
      }
    }
  }
  for (const auto& [reason, count] : reasons) MESSAGE(count << " unnoticed: " << reason);
  MESSAGE(tried << " edits, " << passed << " unnoticed without a reason");
}

TEST_CASE("edits: each edit of a summary is read, from both forms") {
  const Run run = real_run("zs-train");
  metric::Store runs;
  runs.runs = {run};
  const metric::Store made = stat::summarize(runs, {}).store;
  REQUIRE(made.summary);
  const std::string usual = metric::to_summary_text(made);
  int count = 0;
  const auto noticed = [&](const metric::Store& edited, const std::string& what) {
    const std::string wanted = metric::to_summary_text(edited);
    if (wanted == usual) return;
    for (const bool hdf5 : {false, true}) {
      ++count;
      const metric::Store read = metric::parse(hdf5 ? metric::to_h5(edited) : wanted, "summary");
      CHECK_MESSAGE(metric::to_summary_text(read) == wanted, what << (hdf5 ? ", HDF5" : ", text"));
    }
  };
  const auto tables = [](metric::Store& store) {
    std::vector<std::pair<std::string, metric::Table*>> found{{"summary", &*store.summary}};
    for (auto& [name, table] : store.curves) found.emplace_back("curves " + name, &table);
    for (auto& [name, table] : store.tables) found.emplace_back("table " + name, &table);
    for (Run& one : store.runs) found.emplace_back("run " + one.name, &one.records);
    return found;
  };
  metric::Store first = made;
  const auto listed = tables(first);
  for (std::size_t t = 0; t < listed.size(); ++t) {
    const metric::Table& table = *listed[t].second;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      for (std::size_t row = 0; row < table.rows(); ++row) {
        metric::Store edited = made;
        Column& column = tables(edited)[t].second->columns[c];
        if (column.name == "condition" || !put(column, row, far(column, row))) continue;
        noticed(edited, listed[t].first + ": " + column.name);
      }
    }
  }
  for (const auto& [name, value] : made.attributes) {
    metric::Store edited = made;
    edited.attributes[name] += "x";
    noticed(edited, "attribute " + name);
    edited.attributes.erase(name);
    noticed(edited, "attribute " + name + " dropped");
  }
  MESSAGE(count << " edits of a summary");
  CHECK(count > 200);
}

TEST_CASE("edits: runs.csv is never believed, and a difference of two records is told") {
  const TemporaryFolder place;
  const auto config = config::Config::parse("training: {learning_rate: 6e-4}\nmodel: {name: gpt2}\n", "c.yaml");
  const registry::Fields fields{{"command", "zs-train"}, {"final_train_loss", "1.5"}, {"total_time", "3.25"}};
  for (int i = 0; i < 3; ++i) registry::Run::create(place.path(), config, fields).finish("complete", fields);
  const auto read = [&] { return registry::read_runs(place.path(), [](const Fault& fault) { FAIL(fault.what); }); };
  const registry::Runs runs = read();
  const std::string path = place.file("runs.csv"), truth = Input(path).read_all();
  int count = 0;
  for (std::size_t at = 0; at < truth.size(); at += 5) {  // a character changed, lost, doubled; a line lost, doubled
    const std::size_t begin = truth.rfind('\n', at), end = truth.find('\n', at);
    const std::string line = truth.substr(begin + 1, end - begin);
    std::vector<std::string> edits(5, truth);
    edits[0][at] = truth[at] == '7' ? '8' : '7';
    edits[1].erase(at, 1);
    edits[2].insert(at, 1, truth[at]);
    edits[3].erase(begin + 1, line.size());
    edits[4].insert(begin + 1, line);
    for (const std::string& edited : edits) {
      ++count;
      std::ofstream(path, std::ios::binary) << edited;
      CHECK(registry::to_csv(read()) == registry::to_csv(runs));
    }
  }
  const auto told = [&](const registry::Runs& beside) { return registry::difference(beside, 0, 1).rows.size(); };
  const std::size_t usual = told(runs);
  for (const registry::Column& column : runs.columns) {
    if (registry::topic(column.name) == registry::Topic::identity && column.name != "status") continue;
    registry::Fields edited = runs.fields(1);
    const std::string before = registry::value(edited, column.name);
    registry::set(edited, column.name, before.empty() ? "7" : before + "7");
    registry::Runs other = registry::assemble({runs.fields(0), edited, runs.fields(2)});
    ++count;
    CHECK_MESSAGE(told(other) == usual + 1, column.name);
  }
  MESSAGE(count << " edits of runs.csv and records");
  CHECK(count > 500);
}

}  // namespace zs::comparison
