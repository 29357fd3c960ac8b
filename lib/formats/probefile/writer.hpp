// SPDX-License-Identifier: Apache-2.0
// Writes a rank's file of a recording, FOLDER/rank-R.jsonl, as share/probe/zs_probe does for PyTorch (writer.py
// describes the lines).
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tracker/appended.hpp"

namespace zs::probefile {

/// The training, for the first line.
struct Training {
  int rank = 0, ranks = 1;
  std::string layout{}, framework{}, library{};
  std::vector<std::string> frozen{};  ///< parameters
  std::vector<std::string> unseen{};  ///< what is not recorded
};

/// A step without its tensors.
struct StepOf {
  std::int64_t step = 0;
  std::string computed{};        ///< the type that gradients are computed in, "BF16"; "": that of the tensors
  std::optional<double> loss{};  ///< this rank's share of the mean over all
  std::vector<double> losses{};  ///< of this rank's micro-batches
  std::vector<std::pair<std::string, double>> scalars{};
  nlohmann::ordered_json groups =
      nlohmann::ordered_json::array();  ///< of the optimizer, each with its options, its class and its parameters
  nlohmann::ordered_json counters =
      nlohmann::ordered_json::object();             ///< parameters by the optimizer's own count of updates
  std::vector<std::vector<std::uint64_t>> batch{};  ///< of each micro-batch the digests of samples
  std::vector<std::int64_t> targets{};              ///< of each micro-batch: those that the loss counts
  std::string values{};                             ///< the file of this step's values, or ""
};

class Writer {
 public:
  /// Creates the file, or appends to it if its last step is not after the `done` steps of a resumed training. Throws
  /// zs::Error, with the remedy, if it is the recording of another training.
  Writer(const std::string& folder, const Training& training, std::int64_t done);
  /// The file name for this rank's values of a step.
  std::string values_name(std::int64_t step) const;
  /// Parameters and optimizer state after `done` steps, as rows() makes them; `counted`: the optimizer's own count.
  void start(std::int64_t done, std::int64_t counted, const std::string& tensors);
  /// `tensors` in causal order, `locals`: gradients of micro-batches.
  void step(const StepOf& measured, const std::string& tensors, const std::string& locals);
  /// A row that has only these places: the parameters with which a training ends, whatever the stride.
  void only(std::int64_t step, const std::vector<std::string>& places, const std::string& tensors);
  /// The end: `steps` made, every `every`-th recorded; `how`: "whole", "signal 15", "exception WHAT".
  void end(std::int64_t steps, std::int64_t every, const std::string& how);

 private:
  int rank_;
  std::int64_t lines_;  // steps in the file
  tracker::AppendedFile file_;
  Writer(const std::string& path, const Training& training, struct Recorded before);
  void add(nlohmann::ordered_json row, const StepOf& measured, const std::string& tensors, const std::string& locals);
};

}  // namespace zs::probefile
