// SPDX-License-Identifier: Apache-2.0
#include "comparison/two_runs.hpp"

#include <algorithm>
#include <filesystem>

#include "base/file.hpp"
#include "base/number.hpp"
#include "checkpoints/folders.hpp"
#include "input/source.hpp"
#include "metric/file.hpp"

namespace zs::comparison {
namespace {

namespace fs = std::filesystem;

/// The records of a log, and its numbers as they are spelt.
class SpeltRows final : public metric::MemoryWriter {
 public:
  SpeltRows(metric::Run& run, std::map<std::string, std::vector<std::string>>& spelt)
      : MemoryWriter(run), spelt_(spelt) {}
  void row(const std::vector<parse::ColumnInfo>& columns, const std::vector<std::string_view>& cells) override {
    MemoryWriter::row(columns, cells);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].type == metric::Type::real && !cells[i].empty()) spelt_[columns[i].name].emplace_back(cells[i]);
    }
  }

 private:
  std::map<std::string, std::vector<std::string>>& spelt_;
};

void read_logs(Recorded& recorded, const parse::Job& job) {
  std::map<std::string, std::vector<std::string>> spelt;
  SpeltRows rows(recorded.run, spelt);
  parse::read_job(job, {}, rows,
                  [&](const Fault& fault) { recorded.faults.push_back(located(fault.path, fault.line, fault.what)); });
  for (const auto& [name, cells] : spelt) recorded.precision[name] = compare::precision_of(cells);
}

void read_metrics(Recorded& recorded, const std::string& path) {
  metric::Store store = metric::read(path);
  if (store.runs.size() != 1)
    throw Error(path, 0, "holds " + std::to_string(store.runs.size()) + " runs, expected one");
  recorded.run = std::move(store.runs.front());
  for (const metric::Column& column : recorded.run.records.columns) {
    if (column.type() == metric::Type::real)
      recorded.precision[column.name] = compare::precision_of(recorded.run, column);
  }
}

std::int64_t step_of(const std::string& checkpoint) {
  const std::size_t bar = checkpoint.rfind('_');
  return bar == std::string::npos ? INT64_MAX : parse_int(checkpoint.substr(bar + 1)).value_or(INT64_MAX);
}

}  // namespace

std::vector<std::string> Recorded::checkpoints() const {
  std::vector<std::string> names;
  if (folder.empty()) return names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    // One that begins with a point is being written or removed. One whose weights are gone is damaged, not no
    // checkpoint.
    if (name.front() == '.' || name.find("checkpoint") == std::string::npos || !entry.is_directory()) continue;
    if (fs::exists(entry.path() / "SHA256SUMS") || checkpoints::is_plain(entry.path().string())) names.push_back(name);
  }
  std::ranges::sort(names,
                    [](const auto& a, const auto& b) { return std::pair(step_of(a), a) < std::pair(step_of(b), b); });
  return names;
}

Recorded read_recorded(const input::Named& named) {
  Recorded recorded;
  recorded.path = named.name;
  if (is_folder(named.path)) recorded.folder = named.path;
  const std::vector<input::Source> sources = input::sources({named}, input::Prefer::logs);
  if (sources.size() != 1)
    throw Error(named.path, 0, "holds " + std::to_string(sources.size()) + " runs, expected one");
  if (sources[0].metrics.empty())
    read_logs(recorded, sources[0].job);
  else
    read_metrics(recorded, sources[0].metrics);
  return recorded;
}

}  // namespace zs::comparison
