// SPDX-License-Identifier: Apache-2.0
// Reads runs of experiment trackers: TensorBoard's event files, W&B's run files, folders of MLflow's file store.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "parse/log.hpp"
#include "parse/run.hpp"

namespace zs::parse {

/// Whether a file is TensorBoard's or W&B's, by its name, as these programs decide it.
Source source_of(const std::string& path);

/// The tracked runs in a folder: a run folder of W&B or MLflow, a folder of such, or TensorBoard's folders of event
/// files at any depth. Empty if there are none. Runs of MLflow without a metric are left out, and counted in a fault.
std::vector<Job> tracked_jobs(const std::string& folder);

/// Gives runs of W&B, which have their IDs for names, the names that people gave them, where no two have the same.
void name_as_given(std::vector<Job>& jobs);

/// The files of the W&B run `id` in the folders `places`; oldest first.
std::vector<std::string> wandb_files(const std::vector<std::string>& places, const std::string& id);

/// The folders that may contain W&B runs of an experiment in `folder`: "wandb" in it and in its parent folders, and
/// $WANDB_DIR/wandb.
std::vector<std::string> wandb_places(const std::string& folder);

class TrackedReader {
 public:
  /// Rows and sink must outlive the reader.
  TrackedReader(const Options& options, metric::Writer& rows, const FaultSink& faults);

  /// Reads the event files of one TensorBoard run, in order.
  void read_tensorboard(const std::vector<std::string>& files);
  /// Reads the files of one W&B run, in order.
  void read_wandb(const std::vector<std::string>& files);
  /// Reads one run, as parse::read_mlflow() does.
  void read_mlflow(const std::string& path, const std::string& id);
  void set_attribute(const std::string& key, const std::string& value) { attributes_[key] = value; }
  /// Like LogReader::finish().
  void finish();
  /// Here "lines" counts events or records.
  const Stats& stats() const { return stats_; }

 private:
  std::string read_file(const std::string& path);
  void fault(const std::string& what, std::int64_t number = 0);
  void row(const std::vector<Field>& fields, std::int64_t number, int part);
  void fact(std::string_view key, std::string_view value);

  metric::Writer& rows_;
  FaultSink faults_;
  Records records_;
  std::string path_;
  int parts_ = 0;
  std::map<std::string, std::string> attributes_;
  Stats stats_;
};

/// Adds to `log` what only `tracked` has: columns for the same steps, and further steps. False, with `log` unchanged,
/// if the steps of `tracked` are W&B's own count of calls.
bool join(metric::Table& log, const metric::Table& tracked);

}  // namespace zs::parse
