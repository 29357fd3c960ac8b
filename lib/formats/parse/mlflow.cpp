// SPDX-License-Identifier: Apache-2.0
#include "parse/mlflow.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <tuple>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "config/config.hpp"
#include "parse/text.hpp"

namespace zs::parse {
namespace {

namespace fs = std::filesystem;

/// A database that is only read.
class Database {
 public:
  explicit Database(const std::string& path) : path_(path) {
    sqlite3* opened = nullptr;
    const int failed = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
    handle_.reset(opened);
    if (failed) refuse();
  }

  using Row = std::function<std::string(int column)>;
  /// Calls `use` with each row of a query with one parameter at most; a value is its text, and "" is NULL.
  void each(const char* query, const std::string& parameter, const std::function<void(const Row&)>& use) {
    sqlite3_stmt* made = nullptr;
    if (sqlite3_prepare_v2(handle_.get(), query, -1, &made, nullptr) != SQLITE_OK) refuse();
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(made, sqlite3_finalize);
    if (!parameter.empty()) sqlite3_bind_text(made, 1, parameter.c_str(), -1, SQLITE_TRANSIENT);
    int state = SQLITE_ROW;
    while ((state = sqlite3_step(made)) == SQLITE_ROW) {
      use([&](int column) {
        if (sqlite3_column_type(made, column) == SQLITE_FLOAT) return to_text(sqlite3_column_double(made, column));
        const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(made, column));
        return std::string(text ? text : "");
      });
    }
    if (state != SQLITE_DONE) refuse();
  }

 private:
  [[noreturn]] void refuse() const {
    throw Error(path_, 0, std::string("cannot be read as MLflow's database: ") + sqlite3_errmsg(handle_.get()));
  }

  std::string path_;
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> handle_{nullptr, sqlite3_close};
};

void failed(MlflowRun& run, const std::string& status) {
  run.facts.emplace_back("exit_state", "failed");
  run.facts.emplace_back("error", "its status in MLflow is " + status);
}

/// Numbers values that were logged without a step, which MLflow stores as step 0, by their times: by the steps of the
/// metric that has most, or from 1 in the order of its times if none has steps.
void number_steps(std::vector<MlflowValue>& values) {
  using Metric = std::vector<MlflowValue*>;
  std::map<std::string, Metric> by_name;
  for (MlflowValue& one : values) by_name[one.name].push_back(&one);
  const auto stepped = [](const Metric& metric) {
    return std::ranges::any_of(metric, [](const MlflowValue* one) { return one->step != 0; });
  };
  const Metric* clock = nullptr;
  for (const auto& [name, metric] : by_name) {
    if (name.starts_with("system/")) continue;  // MLflow counts its own calls
    const auto weight = [&](const Metric& one) { return std::pair(stepped(one), one.size()); };
    if (!clock || weight(metric) > weight(*clock)) clock = &metric;
  }
  if (!clock || clock->size() < 2) return;
  const bool known = stepped(*clock);
  for (std::size_t i = 0; !known && i < clock->size(); ++i) (*clock)[i]->step = static_cast<std::int64_t>(i) + 1;
  for (const auto& [name, metric] : by_name) {
    if (&metric == clock || stepped(metric) || (known && metric.size() < 2)) continue;
    for (std::size_t i = 0; i < metric.size(); ++i) {
      const auto later =
          std::ranges::upper_bound(*clock, metric[i]->time, {}, [](const MlflowValue* one) { return one->time; });
      const bool beside = metric.size() == clock->size();  // logged at each step, before or after the clock's
      metric[i]->step = beside                    ? (*clock)[i]->step
                        : later == clock->begin() ? clock->front()->step
                                                  : (*(later - 1))->step;
    }
  }
}

MlflowRun of_database(const std::string& path, const std::string& id) {
  MlflowRun run;
  Database database(path);
  database.each("SELECT name, status FROM runs WHERE run_uuid = ?", id, [&](const Database::Row& row) {
    run.facts.emplace_back("mlflow_run_name", row(0));
    if (row(1) == "FINISHED") run.facts.emplace_back("exit_state", "finished");
    if (row(1) == "FAILED" || row(1) == "KILLED") failed(run, row(1));
  });
  database.each("SELECT key, value FROM params WHERE run_uuid = ? ORDER BY key", id,
                [&](const Database::Row& row) { run.facts.emplace_back(row(0), row(1)); });
  database.each("SELECT value FROM tags WHERE run_uuid = ? AND key = 'mlflow.source.git.commit'", id,
                [&](const Database::Row& row) { run.facts.emplace_back("commit", row(0)); });
  database.each("SELECT timestamp, step, key, value, is_nan FROM metrics WHERE run_uuid = ? ORDER BY timestamp, rowid",
                id, [&](const Database::Row& row) {
                  const double time = parse_real(row(0)).value_or(0) / 1000;
                  run.values.push_back({time, ++run.lines, parse_int(row(1)).value_or(0), row(2),
                                        row(4) == "1" ? "nan" : row(3), Kind::real});
                });
  return run;
}

MlflowRun of_folder(const std::string& folder, const FaultSink& faults) {
  MlflowRun run;
  const auto each = [&](const char* part, auto use) {  // the files below a folder, by their path, which is the name
    const fs::path place = fs::path(folder) / part;
    for (const fs::path& file : files_below(place)) use(file.lexically_relative(place).string(), file.string());
  };
  const auto meta = (fs::path(folder) / "meta.yaml").string();
  const config::Config told = config::Config::parse(Input(meta).read_all(), meta);
  for (const config::Entry& entry : told.entries()) {
    const auto state = entry.key == "status" ? parse_int(entry.value).value_or(0) : 0;
    if (state == 3) run.facts.emplace_back("exit_state", "finished");
    if (state == 4 || state == 5) failed(run, state == 4 ? "FAILED" : "KILLED");
    if (entry.key == "run_name") run.facts.emplace_back("mlflow_run_name", entry.value);
  }
  each("params",
       [&](const std::string& name, const std::string& path) { run.facts.emplace_back(name, Input(path).read_all()); });
  each("tags", [&](const std::string& name, const std::string& path) {
    if (name == "mlflow.runName") run.facts.emplace_back("mlflow_run_name", Input(path).read_all());
    if (name == "mlflow.source.git.commit") run.facts.emplace_back("commit", Input(path).read_all());
  });
  each("metrics", [&](const std::string& name, const std::string& path) {
    const std::string content = Input(path).read_all();
    std::int64_t number = 0;
    for (std::string_view rest = content; !rest.empty();) {  // "1665035303022 0.185 0": time in ms, value, step
      std::string_view line = rest.substr(0, std::min(rest.find('\n'), rest.size()));
      const bool ended = line.size() < rest.size();
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      ++number;
      ++run.lines;
      const auto time = parse_real(take_number(line).text);
      skip_blanks(line);
      const Token value = take_number(line);
      skip_blanks(line);
      const auto step = line.empty() ? 0 : parse_int(take_number(line).text);  // old files have no step
      if (!time || value.text.empty() || !step || !trimmed(line).empty() || !ended) {
        faults({path, number, "malformed line: expected a time, a value and a step"});
        continue;
      }
      run.values.push_back({*time / 1000, number, *step, name, std::string(value.text), value.kind});
    }
  });
  // Each metric has a file. Values of a step with the same time were logged together.
  std::ranges::stable_sort(run.values, {}, [](const MlflowValue& one) { return std::tuple(one.time, one.number); });
  return run;
}

/// Whether a folder is a run of MLflow's file store: mlruns/EXPERIMENT/RUN.
bool is_run(const fs::path& folder) {
  if (!is_file(folder / "meta.yaml")) return false;
  return is_folder(folder / "metrics") || is_folder(folder / "params") || is_folder(folder / "tags");
}

/// The runs in a store, in an experiment of it, or the folder itself.
void find_runs(const fs::path& folder, int depth, std::vector<fs::path>& runs) {
  const bool run = is_run(folder);
  if (run) runs.push_back(folder);
  if (depth == 0 || (depth == 1 && (run || !is_file(folder / "meta.yaml")))) return;
  for (const fs::path& entry : entries_of(folder)) find_runs(entry, depth - 1, runs);
}

}  // namespace

bool is_mlflow_store(const std::string& path) {
  constexpr std::string_view kMagic = "SQLite format 3";
  if (!path.ends_with(".db") && !path.ends_with(".sqlite") && !path.ends_with(".sqlite3")) return false;
  std::string start(kMagic.size(), '\0');
  std::ifstream(path, std::ios::binary).read(start.data(), static_cast<std::streamsize>(start.size()));
  return start == kMagic;
}

MlflowRun read_mlflow(const std::string& path, const std::string& id, const FaultSink& faults) {
  MlflowRun run = id.empty() ? of_folder(path, faults) : of_database(path, id);
  number_steps(run.values);
  return run;
}

std::vector<Job> mlflow_jobs(const std::string& path) {
  std::vector<Job> jobs;
  std::size_t runs_found = 0;
  const auto add = [&](Job job, bool measured) {
    ++runs_found;
    job.source = Source::mlflow;
    if (measured) jobs.push_back(std::move(job));
  };
  if (is_mlflow_store(path)) {
    Database(path).each(
        "SELECT run_uuid, name, EXISTS (SELECT 1 FROM metrics WHERE metrics.run_uuid = runs.run_uuid), "
        "(SELECT count(*) FROM runs AS other WHERE other.name = runs.name) FROM runs "
        "WHERE lifecycle_stage = 'active' ORDER BY start_time",
        "", [&](const Database::Row& row) {
          Job job{as_word(row(3) == "1" ? row(1) : row(0)), {path}, {}};
          job.series = row(0);
          add(std::move(job), row(2) == "1");
        });
  } else {
    for (const fs::path& entry : entries_of(path)) {
      if (is_mlflow_store(entry.string())) std::ranges::move(mlflow_jobs(entry.string()), std::back_inserter(jobs));
    }
    runs_found = jobs.size();
    std::vector<fs::path> runs;
    find_runs(path, 2, runs);
    std::ranges::sort(runs);
    for (const fs::path& run : runs) {
      std::error_code error;
      add(Job{as_word(fs::weakly_canonical(run).filename().string()), {run.string()}, {}},
          is_folder(run / "metrics") && !fs::is_empty(run / "metrics", error));
    }
  }
  if (jobs.size() < runs_found && !jobs.empty())
    jobs.front().faults.push_back({path, 0,
                                   std::to_string(runs_found - jobs.size()) + " of " + std::to_string(runs_found) +
                                       " runs of MLflow have no metric, and are left out"});
  return jobs;
}

}  // namespace zs::parse
