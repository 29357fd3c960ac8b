// SPDX-License-Identifier: Apache-2.0
// The metrics of a run, filled while it runs: by what zs-parse reads in its log, by the files of W&B and TensorBoard
// that it writes, and by how busy the machine is. A thread of its own follows the log.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "experiment/lease.hpp"
#include "metric/writer.hpp"
#include "parse/log.hpp"
#include "recording/use.hpp"

namespace zs::recording {

/// What the records came to.
struct Result {
  metric::Writer::Facts facts;  ///< what the log says of the run: error, error_rank, expected_steps, ...
  std::int64_t rows = 0;
  std::int64_t last_step = -1;                            ///< -1: no step is known
  std::string final_loss, final_valid_loss, peak_memory;  ///< as text; "" where there is none
  bool diverged = false;                                  ///< the last loss is not finite
};

class Metrics {
 public:
  using Tell = std::function<void(const std::string&)>;

  /// Follows `log`, which is there, into `file`, behind what the logs of `earlier` attempts say. Use and lease outlive
  /// this. A file that cannot be written is told once and tried again.
  Metrics(std::vector<std::string> earlier, std::string log, std::string file, const std::string& run,
          const metric::Writer::Facts& facts, parse::Options options, UseWatch& use, const experiment::Lease& lease,
          Tell warn);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// A file of W&B or TensorBoard that the command has open.
  void add_tracked(const std::string& path) { tracked_.insert(path); }
  /// Whether the log has had a record.
  bool any() const;
  /// Writes the file where it is due. Throws Error where another process has taken the run over.
  /// All that writes is done by the thread that calls this: HDF5 is of one thread.
  void flush();
  /// Where no more comes: reads the log and the tracked files to their ends.
  Result end();
  /// The seconds since something was logged that is a record. Any thread may call.
  double quiet() const;
  /// Writes the file, with all that is known. REQUIRES: after end().
  void write(const metric::Writer::Facts& facts);

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
  std::atomic<bool> ended_ = true;  ///< no more comes of the log that is read
  std::atomic<bool> stop_ = false;  ///< nor of any
  std::set<std::string> tracked_;
  std::chrono::steady_clock::time_point next_refresh_{};
  std::unique_ptr<Rows> rows_;
  std::unique_ptr<parse::LogReader> reader_;
  const FaultSink faults_ = [](const Fault&) {};  // zs-parse tells them of run.log
  std::thread thread_;
};

}  // namespace zs::recording
