// SPDX-License-Identifier: Apache-2.0
// Runs of MLflow: folders of its file store, and its database of SQLite.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "parse/run.hpp"

namespace zs::parse {

struct MlflowValue {
  double time = 0;                    ///< unix seconds
  std::int64_t number = 0, step = 0;  ///< the line of its file, or the row of the database
  std::string name, value;
  Kind kind = Kind::real;
};

struct MlflowRun {
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<MlflowValue> values;  ///< in the order in which they were logged
  std::int64_t lines = 0;
};

/// Reads one run: of a folder with meta.yaml and a file for each metric, parameter and tag if `id` is empty, else the
/// run of that id in a database. A malformed line is a fault. Throws zs::Error if the file or the database cannot be
/// read.
MlflowRun read_mlflow(const std::string& path, const std::string& id, const FaultSink& faults);

/// The runs that have a metric, in a store, an experiment or the folder of one run, or in a database; those without one
/// are counted in a fault. Throws zs::Error if a database cannot be read.
std::vector<Job> mlflow_jobs(const std::string& path);

/// Whether a file is a database of SQLite, by its name and its first bytes.
bool is_mlflow_store(const std::string& path);

}  // namespace zs::parse
