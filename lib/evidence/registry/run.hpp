// SPDX-License-Identifier: Apache-2.0
// Writes a run in the registry: a folder with a unique id, its configuration, and its record.
#pragma once
#include <cstdint>
#include <string>

#include "config/config.hpp"
#include "registry/record.hpp"

namespace zs::registry {

/// The registry's folder: `given` if not empty, else $ZS_REGISTRY, else "saved_models".
std::string place(const std::string& given);

/// Facts about the machine for a run that starts now: host, user, directory, process (its id on the host and its start
/// time, in clock ticks since boot), and Slurm's ids if there are any.
Fields environment();
/// The field "process" for the process with that id on this host; "" if there is none.
std::string process_text(std::int64_t pid);

/// The sweep and the settings of a configuration as fields of a record: null is left out, truth values are true and
/// false, and counts are numbers ("10M" is 10000000), so that each column of runs.csv has one type.
Fields settings(const config::Config& config);

/// Throws Error at invalid fields: without a name, with a name of several lines, run_id, secrets.
void check(const Fields& fields);

class Run {
 public:
  /// Registers a run before its first step: creates REGISTRY/ID/ (and the registry), writes the whole `config` into it
  /// as config.yaml, and records id, name ("run.name" of the configuration, else the id), sweep, time, every setting,
  /// environment(), and `fields` (command, revision, ...), with status "running". The id is unique among all processes
  /// on all hosts. The run exists only when this has returned. Throws Error.
  static Run create(const std::string& registry, const config::Config& config, const Fields& fields);
  /// Like create(), for a run known only by fields; status is "recorded" unless they contain it.
  static Run create(const std::string& registry, const std::string& name, const Fields& fields);

  /// Registers a run for later training: as create(), with status "planned" and without environment(). `name` is its
  /// name if the configuration has none.
  static Run plan(const std::string& registry, const config::Config& config, const std::string& name,
                  const Fields& fields);

  /// Starts the training of a registered run in this process, or resumes it after `done` steps: records status
  /// "running", environment(), `fields` and "restarts", the number of resumes; after a resume also "segments", the
  /// steps after which its parts began. Clears the fields of an earlier end (exit code, error).
  void begin(std::int64_t done, const Fields& fields) const;

  const std::string& id() const { return id_; }
  const std::string& registry() const { return registry_; }
  /// REGISTRY/ID.
  std::string folder() const { return registry_ + "/" + id_; }

  /// Adds to the record. Other processes may do so at once. Throws Error, also for a key that cannot be changed.
  void update(const Fields& fields) const;
  /// update() with the final metrics and "status" ("complete", "failed", "diverged", ...), then refreshes the index.
  void finish(const std::string& status, const Fields& fields) const;

  /// The run with that id, for updates. Reads nothing.
  Run(std::string registry, std::string id) : registry_(std::move(registry)), id_(std::move(id)) {}

 private:
  std::string registry_, id_;
};

/// Whether `id` is the complete id of a run; reads only that run.
bool registered(const std::string& registry, const std::string& id);

/// Removes a run with its folder: first from the registry in one step, then its files.
void remove(const std::string& registry, const std::string& id);

}  // namespace zs::registry
