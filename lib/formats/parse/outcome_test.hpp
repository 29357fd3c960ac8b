// SPDX-License-Identifier: Apache-2.0
// What comes out of a log, for tests.
#pragma once
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "parse/log.hpp"

namespace zs::parse {

/// The cells of each column, and attributes with '=' behind their names.
class Collected : public metric::Writer {
 public:
  void row(const std::vector<ColumnInfo>& columns, const std::vector<std::string_view>& cells) override {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!cells[i].empty()) values[columns[i].name].insert(std::string(cells[i]));
    }
  }
  void finish(const std::map<std::string, std::string>& attributes) override {
    for (const auto& [key, value] : attributes) {
      if (!key.starts_with("source")) values[key + "="].insert(value);
    }
  }
  std::map<std::string, std::set<std::string>> values;
};

struct Outcome {
  Collected out;
  Stats stats;
};

inline Outcome outcome_of(const std::string& text) {
  const std::string name = "/tmp/zs-dialects-test-" + std::to_string(::getpid());
  std::ofstream(name, std::ios::binary) << text;
  Outcome outcome;
  const Options options;
  const FaultSink sink = [](const Fault&) {};
  LogReader reader(options, outcome.out, sink);
  reader.read(name);
  reader.finish();
  ::unlink(name.c_str());
  outcome.stats = reader.stats();
  const Stats& stats = outcome.stats;
  std::int64_t sum = stats.faulty + stats.other;
  for (const auto& [dialect, count] : stats.matched) sum += count;
  CHECK(sum == stats.lines);
  CHECK(stats.other >= 0);
  CHECK(stats.lines == std::count(text.begin(), text.end(), '\n') + (!text.empty() && text.back() != '\n'));
  return outcome;
}

/// The times of steps that are known.
inline std::set<std::string> times(const Outcome& outcome) {
  std::set<std::string> found = outcome.out.values.at("iteration_time");
  found.erase("");
  return found;
}

}  // namespace zs::parse
