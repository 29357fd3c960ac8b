// SPDX-License-Identifier: Apache-2.0
// Determines a run's actual state, from its metrics, its job and its process, not only from its record.
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attribute/state.hpp"
#include "experiment/lease.hpp"
#include "metric/table.hpp"
#include "registry/record.hpp"
#include "registry/runs.hpp"

namespace zs::experiment {

/// The value of the field "tool" in a run of another program's training: zs-record watches it.
inline constexpr std::string_view kRecorder = "zs-record";

/// The value of the attribute "lacks" in its metrics if these lack nothing. With it, steps_done is counted in them.
inline constexpr const char* kNothing = "nothing";

using attribute::name;
using attribute::RunState;

struct State {
  RunState state = RunState::unknown;
  std::string basis;   ///< the evidence: "squeue: job 12_3 RUNNING"
  bool again = false;  ///< failed, truncated, missing, cancelled, or preempted for good: must be run again; not if
                       ///< another program's training ended with 0
};

/// The number of steps in a run's metrics.
struct Progress {
  bool known = false;                      ///< metrics exist
  std::string fault;                       ///< why they cannot be read
  std::int64_t done = 0;                   ///< steps up to this exist, each once, from the run's first step
  std::optional<std::int64_t> expected{};  ///< expected number of steps
  bool finished = false;                   ///< the state digest, which is written last, exists
  std::string lacks{};                     ///< for another program's training: "ends at step 2 of 9"
  bool promised = true;  ///< zs-train's: it records every step; for other programs `done` is the last recorded step
};
/// The metrics of the run in `folder`, which may contain anything from other users. Throws Error.
metric::Run metrics_of(const std::string& folder);
/// The progress of a run with these metrics. If rows are not one per step, `fault` says so.
Progress progress_of(const metric::Run& run);
Progress progress(const std::string& folder);
using ProgressOf = std::function<Progress(const std::string& folder)>;

enum class Process { unknown, alive, gone, elsewhere };
Process process(const registry::Fields& record);

/// The known facts about one run.
struct Facts {
  registry::Fields record;
  bool configured = false;  ///< zs planned it, trains it or watches it: more than its record is known
  Progress progress{};
  std::string job_id;        ///< of its job, if any
  std::optional<Job> job{};  ///< Slurm's information
  std::string silence{};     ///< why Slurm has none: "" if it was asked
  Process process = Process::unknown;
  double quiet = 0;  ///< seconds since the run's last write
};
State judge(const Facts& facts);

/// The conclusion about a run.
struct Found {
  State state;
  std::string steps;   ///< "80/120"
  std::string job_id;  ///< "12_3"
  std::string nodes;   ///< of the job
};
/// Determines the states of the runs in these folders, with one query to Slurm. `records` are theirs; if empty, they
/// are read. A run whose folder is gone is missing.
std::vector<Found> find(const std::vector<std::string>& folders, std::vector<registry::Fields> records = {},
                        const ProgressOf& progress_of_run = progress);

/// The columns of the table that are computed on request.
inline constexpr std::array<std::string_view, 5> kFoundOut = {"state", "steps", "slurm_job", "nodes", "basis"};

/// find() for the runs in `rows`: adds the columns kFoundOut to the table, empty in other rows. Returns the states, by
/// row of `rows`.
std::vector<State> add_states(const std::string& registry, const std::vector<std::size_t>& rows, registry::Runs& runs,
                              const ProgressOf& progress_of_run = progress);

/// For people: replaces the column status of `rows`, from the runs' records, by the states. A run known only by its
/// record keeps its status.
void tell_states(const std::string& registry, const std::vector<std::size_t>& rows, registry::Runs& runs,
                 const ProgressOf& progress_of_run = progress);

}  // namespace zs::experiment
