// SPDX-License-Identifier: Apache-2.0
// What has really become of a run: not what its record said last, but what its metrics, its job and its process show.
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attribute/state.hpp"
#include "experiment/queue.hpp"
#include "metric/table.hpp"
#include "registry/record.hpp"
#include "registry/runs.hpp"

namespace zs::experiment {

/// What a run of anybody's training says in its field "tool": that zs-record watches it.
inline constexpr std::string_view kRecorder = "zs-record";

using attribute::name;
using attribute::RunState;

struct State {
  RunState state = RunState::unknown;
  std::string basis;   ///< what it was concluded from: "squeue: job 12_3 RUNNING"
  bool again = false;  ///< failed, truncated, missing, cancelled, or preempted for good: it has to be run again; not
                       ///< where another's training ended with 0
};

/// How far a run's metrics go.
struct Progress {
  bool known = false;     ///< there are metrics
  std::string fault;      ///< why they cannot be read
  std::int64_t done = 0;  ///< steps up to this are there, each once, from the first that the run was to train
  std::optional<std::int64_t> expected{};  ///< how many there are to be
  bool finished = false;                   ///< the state digest, which is written last, is there
  std::string lacks{};                     ///< of another's training: "ends at step 2 of 9"
  bool promised = true;  ///< zs-train's: it records each step; of another's training `done` is the last
};
/// The metrics of the run in `folder`, which others may have put anything into. Throws Error.
metric::Run metrics_of(const std::string& folder);
/// Of a run with these metrics. Of rows that are not each step once, `fault` says so.
Progress progress_of(const metric::Run& run);
/// Of the run in `folder`.
Progress progress(const std::string& folder);
using ProgressOf = std::function<Progress(const std::string& folder)>;

enum class Process { unknown, alive, gone, elsewhere };
/// Of a record's host and process.
Process process(const registry::Fields& record);

/// What is known about one run.
struct Facts {
  registry::Fields record;
  bool configured = false;  ///< zs has planned it, trains it or watches it: not only its record is known
  Progress progress{};
  std::string job_id;        ///< of its job, if any
  std::optional<Job> job{};  ///< as Slurm knows it
  std::string silence{};     ///< why Slurm does not know: "" if it was asked
  Process process = Process::unknown;
  double quiet = 0;  ///< seconds since the run wrote anything
};
State judge(const Facts& facts);

/// What was found out about a run.
struct Found {
  State state;
  std::string steps;   ///< "80/120"
  std::string job_id;  ///< "12_3"
  std::string nodes;   ///< of the job
};
/// Judges the runs in these folders, asking Slurm once. `records` are theirs; where there are none, they are read. A
/// folder that is gone is a run that is missing.
std::vector<Found> find(const std::vector<std::string>& folders, std::vector<registry::Fields> records = {},
                        const ProgressOf& progress_of_run = progress);

/// The columns of the table that are found out when somebody asks.
inline constexpr std::array<std::string_view, 5> kFoundOut = {"state", "steps", "slurm_job", "nodes", "basis"};

/// find() for the runs in `rows`: adds to the table the columns kFoundOut. Rows that are
/// not named stay empty. The states, by row of `rows`.
std::vector<State> add_states(const std::string& registry, const std::vector<std::size_t>& rows, registry::Runs& runs,
                              const ProgressOf& progress_of_run = progress);

/// For people: puts the states of `rows` into the column status, in place of what the runs' records say. A run of which
/// only the record is known keeps that.
void tell_states(const std::string& registry, const std::vector<std::size_t>& rows, registry::Runs& runs,
                 const ProgressOf& progress_of_run = progress);

}  // namespace zs::experiment
