// SPDX-License-Identifier: Apache-2.0
// A run in the registry, for who writes it: a folder with a unique id, its configuration, and its record.
#pragma once
#include <cstdint>
#include <string>

#include "config/config.hpp"
#include "registry/record.hpp"

namespace zs::registry {

/// The registry's folder: `given` if not empty, else $ZS_REGISTRY, else "saved_models".
std::string place(const std::string& given);

/// What the machine tells about a run that starts now: host, user, directory, process (which one of the host: its id
/// and when it began, in clock ticks since boot), and Slurm's ids where there are.
Fields environment();
/// The field "process" of the process with that id on this host; "" where there is none.
std::string process_text(std::int64_t pid);

/// The sweep and the settings of a configuration as fields of a record: what is null is left out, truth values are true
/// and false, and counts are numbers ("10M" is 10000000), so that runs.csv has one type in a column.
Fields settings(const config::Config& config);

/// Throws Error at fields that no record takes: without a name, with one that is not a line, run_id, secrets.
void check(const Fields& fields);

class Run {
 public:
  /// Registers a run before its first step: makes REGISTRY/ID/ (and the registry), writes config.yaml, the whole of
  /// `config`, into it, and records id, name ("run.name" of the configuration, else the id), sweep, time, every
  /// setting, environment(), and `fields` (command, revision, ...), with status "running". The id is unique among all
  /// processes on all hosts. The run is registered when this returns; before, it does not exist. Throws Error.
  static Run create(const std::string& registry, const config::Config& config, const Fields& fields);
  /// As create(), of a run that is known only by fields; status is "recorded" unless they tell it.
  static Run create(const std::string& registry, const std::string& name, const Fields& fields);

  /// Registers a run that somebody will train later: as create(), with status "planned" and without environment().
  /// `name` is its name if the configuration has none.
  static Run plan(const std::string& registry, const config::Config& config, const std::string& name,
                  const Fields& fields);

  /// The training of a registered run starts here and now, or goes on after `done` steps: adds to the record status
  /// "running", environment(), `fields` and "restarts", how often it went on; if it did, also "segments", the steps
  /// after which its parts began. What an earlier end said (exit code, error) is taken back.
  void begin(std::int64_t done, const Fields& fields) const;

  const std::string& id() const { return id_; }
  /// REGISTRY/ID.
  std::string folder() const { return registry_ + "/" + id_; }

  /// Adds to the record. Other processes may do so at once. Throws Error, also for a key that cannot be changed.
  void update(const Fields& fields) const;
  /// update() with the final metrics and "status" ("complete", "failed", "diverged", ...), then refreshes the index.
  void finish(const std::string& status, const Fields& fields) const;

  /// The run of that id, for updates. Nothing is read.
  Run(std::string registry, std::string id) : registry_(std::move(registry)), id_(std::move(id)) {}

 private:
  std::string registry_, id_;
};

/// Whether `id` is the whole id of a run; looks at that run only.
bool registered(const std::string& registry, const std::string& id);

/// Removes a run with everything in its folder. At once it is no longer in the registry, then its files go.
void remove(const std::string& registry, const std::string& id);

}  // namespace zs::registry
