// SPDX-License-Identifier: Apache-2.0
// Slurm's information about jobs: squeue, and sacct if the cluster keeps accounts.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace zs::experiment {

struct Job {
  std::string state;  ///< "RUNNING", "PENDING", "NODE_FAIL", ...
  std::string nodes;  ///< "n[1-2]"; may be empty

  /// Whether it is in the queue: it runs, waits, or is about to end or to restart.
  bool live() const;
};

struct Queue {
  std::string cluster;              ///< the cluster that answered; "" if none did
  std::string silence;              ///< why none answers: "no squeue on PATH"; "" if one does
  std::map<std::string, Job> jobs;  ///< by id: "12", or "12_3" for an element of an array
};

/// Asks the cluster of this shell. `ids` are of jobs or of whole arrays. Jobs that the cluster has forgotten are
/// missing in the answer. Never fails: a cluster that does not answer within 20 s counts as silent.
Queue ask_slurm(const std::vector<std::string>& ids);

/// Adds to `jobs` the lines ID|STATE|NODES of squeue or sacct; existing jobs are kept. Skips other lines, and sacct's
/// lines of steps.
void add_jobs(std::string_view lines, std::map<std::string, Job>& jobs);

}  // namespace zs::experiment
