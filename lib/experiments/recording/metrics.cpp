// SPDX-License-Identifier: Apache-2.0
#include "recording/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "attribute/table.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "experiment/state.hpp"
#include "metric/file.hpp"
#include "parse/tracked.hpp"

namespace zs::recording {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kShare = 0.001;              // of the time, for writing the file
constexpr std::chrono::seconds kRefresh{30};  // between looks at tracked files, at least

/// The last step of the records; -1 if none has one.
std::int64_t last_step(const metric::Table& records) {
  std::int64_t last = -1;
  const metric::Column* const steps = records.find("step");
  if (!steps || steps->type() != metric::Type::integer) return last;
  for (const std::int64_t step : steps->integers()) last = std::max(last, step);  // absent is the smallest integer
  return last;
}

}  // namespace

/// Adds to the first row after each sample how busy the machine was. Rows come from one thread, and are written by
/// another.
class Metrics::Rows : public metric::Writer {
 public:
  Rows(const std::string& file, UseWatch& use) : file_(file, kShare), use_(use) {}

  void begin(const std::string& run, const Facts& attributes) override { file_.begin(run, attributes); }

  void row(const std::vector<metric::ColumnInfo>& columns, const std::vector<std::string_view>& cells) override {
    for (std::size_t i = places_.size(); i < columns.size(); ++i) {
      places_.push_back(columns_.size());
      columns_.push_back(columns[i]);
    }
    std::vector<std::string> used;
    if (const std::optional<Use> use = use_.take()) {
      used = recording::cells(*use);
      if (own_.empty()) {
        for (const metric::ColumnInfo& column : use_columns()) {
          own_.push_back(columns_.size());
          columns_.push_back(column);
        }
      }
    }
    std::vector<std::string_view> row(columns_.size());
    for (std::size_t i = 0; i < columns.size(); ++i) row[places_[i]] = cells[i];
    for (std::size_t i = 0; i < used.size(); ++i) row[own_[i]] = used[i];
    const std::lock_guard lock(mutex_);
    file_.row(columns_, row);
  }

  void flush(bool now) override {
    if (!file_.due(now)) return;
    const std::lock_guard lock(mutex_);
    const std::int64_t last = last_step(file_.run().records);
    if (last >= 0) file_.run().attributes["steps_done"] = to_text(last);
    file_.run().attributes["lacks"] = "its end";
    file_.flush(now);
  }
  void finish(const Facts& facts) override { facts_ = facts; }

  bool due() const { return file_.due(false); }
  /// REQUIRES: no more rows come, or only what cannot change is looked at.
  metric::FileWriter& file() { return file_; }
  metric::Run copy() {
    const std::lock_guard lock(mutex_);
    return file_.run();
  }
  bool any() {
    const std::lock_guard lock(mutex_);
    return file_.run().records.rows() > 0;
  }
  const Facts& facts() const { return facts_; }

 private:
  std::mutex mutex_;  // of the rows in file_
  metric::FileWriter file_;
  UseWatch& use_;
  std::vector<metric::ColumnInfo> columns_;
  std::vector<std::size_t> places_, own_;  // of the log's columns and of ours, among columns_
  Facts facts_;
};

Metrics::Metrics(std::vector<std::string> earlier, std::string log, std::string file, const std::string& run,
                 const metric::Writer::Facts& facts, parse::Options options, UseWatch& use,
                 const experiment::Lease& lease, Tell warn)
    : earlier_(std::move(earlier)),
      log_(std::move(log)),
      file_(std::move(file)),
      options_(std::move(options)),
      lease_(lease),
      warn_(std::move(warn)) {
  rows_ = std::make_unique<Rows>(file_, use);
  rows_->begin(run, facts);
  options_.facts_only = true;  // a training may print no metrics
  options_.follow_until = &ended_;
  reader_ = std::make_unique<parse::LogReader>(options_, *rows_, faults_);
  thread_ = std::thread([this] { follow(); });
}

Metrics::~Metrics() {
  stop_ = ended_ = true;
  if (thread_.joinable()) thread_.join();
}

void Metrics::follow() {
  try {
    for (const std::string& log : earlier_) reader_->read(log);
    reader_->forget_end();
    ended_ = false;
    if (stop_) ended_ = true;
    reader_->read(log_);
  } catch (const std::exception& error) {
    warn_(std::string(error.what()) + ": the command continues without metrics");
  }
}

bool Metrics::any() const { return rows_->any(); }

void Metrics::flush() {
  if (!rows_->due()) return;
  lease_.check();
  try {
    rows_->any() ? rows_->flush(false) : refresh();
  } catch (const Error& error) {
    if (!told_) warn_(std::string(error.what()) + ": the command continues; zs-record tries its metrics again");
    told_ = true;
  }
}

/// Adds what W&B and TensorBoard have of the same steps, and further steps.
void Metrics::read_tracked(metric::Run& into) const {
  std::map<std::string, parse::Job> jobs;  // by folder
  for (const std::string& path : tracked_) {
    parse::Job& job = jobs[std::filesystem::path(path).parent_path().string()];
    job.run = "tracked";
    job.source = parse::source_of(path);
    job.logs.push_back(path);
  }
  for (const auto& [folder, job] : jobs) {
    try {
      parse::Options options = options_;
      options.follow_until = nullptr;
      const metric::Store store = parse::collect({job}, options, faults_);
      const metric::Run& other = store.runs.at(0);
      if (into.records.rows() == 0)
        into.records = other.records;
      else
        parse::join(into.records, other.records);
      for (const auto& [key, value] : other.attributes) into.attributes.emplace(key, value);
    } catch (const std::exception&) {
      // It is only being written, or gone: what the log says stays.
    }
  }
}

/// While nothing in the log is a record: what the trackers' files say.
void Metrics::refresh() {
  if (Clock::now() < next_refresh_ || tracked_.empty()) return;
  const auto begin = Clock::now();
  metric::Run run = rows_->copy();
  read_tracked(run);
  if (run.records.rows() > 0) write_file(file_, metric::to_h5({{run}, {}, {}, {}, {}}));
  const std::chrono::duration<double> took = Clock::now() - begin;
  next_refresh_ =
      begin + std::max<Clock::duration>(kRefresh, std::chrono::duration_cast<Clock::duration>(took / kShare));
}

Result Metrics::end() {
  stop_ = ended_ = true;
  if (thread_.joinable()) thread_.join();
  Result result;
  try {
    reader_->finish();
  } catch (const std::exception&) {
  }
  result.facts = rows_->facts();
  metric::Run& run = rows_->file().run();
  read_tracked(run);
  const metric::Table& records = run.records;
  result.rows = static_cast<std::int64_t>(records.rows());
  const metric::Column* const steps = records.find("step");
  const auto last = [&](const char* name) -> Last {
    const metric::Column* const column = records.find(name);
    for (std::size_t row = column ? column->size() : 0; row-- > 0;) {
      if (!column->absent(row)) return {column->text(row), steps && !steps->absent(row) ? steps->text(row) : ""};
    }
    return {};
  };
  for (const metric::Column& column : records.columns) {
    const bool ours = std::any_of(use_columns().begin(), use_columns().end(),
                                  [&](const metric::ColumnInfo& use) { return use.name == column.name; });
    const bool plain = std::ranges::all_of(column.name, parse::is_key);
    if (column.type() == metric::Type::text || ours || !plain || attribute::find(column.name)) continue;
    if (const Last value = last(column.name.c_str()); !value.text.empty())
      result.metrics.emplace_back("last." + column.name, value.text);
  }
  result.last_step = last_step(records);
  result.final_loss = last("loss");
  result.final_valid_loss = last("valid_loss");
  if (const metric::Column* const peak = records.find("peak_mem"); peak && peak->type() == metric::Type::integer) {
    std::int64_t most = 0;
    for (const std::int64_t bytes : peak->integers()) most = std::max(most, bytes);
    if (most > 0) result.peak_memory = to_text(most);
  }
  const auto loss = parse_real(result.final_loss.text);
  result.diverged = loss && !std::isfinite(*loss);
  return result;
}

void Metrics::write(const metric::Writer::Facts& facts, std::string& lacks) {
  metric::Run& run = rows_->file().run();
  metric::Writer::Facts joined_facts = facts;
  for (const auto& [key, value] : run.attributes) joined_facts.emplace(key, value);
  for (const auto& [key, value] : rows_->facts()) joined_facts.emplace(key, value);
  joined_facts.erase("lacks");
  run.attributes = joined_facts;
  lacks = experiment::progress_of(run).lacks;
  joined_facts["lacks"] = lacks.empty() ? experiment::kNothing : lacks;
  rows_->file().finish(joined_facts);
}

}  // namespace zs::recording
