// SPDX-License-Identifier: Apache-2.0
// Records the metrics of a run while it runs: from its log, as zs-parse reads it, from its files of W&B and
// TensorBoard, and from the use of the machine. A separate thread follows the log.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "experiment/lease.hpp"
#include "metric/writer.hpp"
#include "parse/log.hpp"
#include "recording/use.hpp"
#include "registry/record.hpp"

namespace zs::recording {

/// A column's last value and its step, as text; "" if unknown.
struct Last {
  std::string text, step;
};

/// The result of the records.
struct Result {
  metric::Writer::Facts facts;  ///< facts about the run from the log: error, error_rank, expected_steps, ...
  std::int64_t rows = 0;
  std::int64_t last_step = -1;  ///< -1: unknown
  Last final_loss, final_valid_loss;
  registry::Fields metrics;  ///< last values of the columns that zs has no name for: "last.my_metric"
  std::string peak_memory;   ///< as text; "" if unknown
  bool diverged = false;     ///< the last loss is not finite
};

class Metrics {
 public:
  using Tell = std::function<void(const std::string&)>;

  /// Follows the existing file `log` and writes to `file`, after the metrics of the logs of `earlier` attempts. Use and
  /// lease must outlive this. A failed write is reported once and tried again.
  Metrics(std::vector<std::string> earlier, std::string log, std::string file, const std::string& run,
          const metric::Writer::Facts& facts, parse::Options options, UseWatch& use, const experiment::Lease& lease,
          Tell warn);
  ~Metrics();

  /// A file of W&B or TensorBoard that the command has opened.
  void add_tracked(const std::string& path) { tracked_.insert(path); }
  /// Whether the log has had a record.
  bool any() const;
  /// Writes the file if due. Throws Error if another process has taken the run over. Only the calling thread writes:
  /// HDF5 needs a single thread.
  void flush();
  /// Call it when nothing more comes: reads the log and the tracked files to their ends.
  Result end();
  /// Writes the file with all records, and says what these lack: "ends at step 2 of 9". REQUIRES: after end().
  void write(const metric::Writer::Facts& facts, std::string& lacks);

 private:
  class Rows;
  void follow();
  void read_tracked(metric::Run& into) const;
  void refresh();

  std::vector<std::string> earlier_;
  std::string log_, file_;
  parse::Options options_;
  const experiment::Lease& lease_;
  Tell warn_;
  bool told_ = false;
  std::atomic<bool> ended_ = true;  ///< the current log is complete
  std::atomic<bool> stop_ = false;  ///< all logs are complete
  std::set<std::string> tracked_;
  std::chrono::steady_clock::time_point next_refresh_{};
  std::unique_ptr<Rows> rows_;
  std::unique_ptr<parse::LogReader> reader_;
  const FaultSink faults_ = [](const Fault&) {};  // zs-parse reports the faults of run.log
  std::thread thread_;
};

}  // namespace zs::recording
