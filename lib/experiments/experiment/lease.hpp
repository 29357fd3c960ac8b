// SPDX-License-Identifier: Apache-2.0
// Ensures that only one training at a time writes into a run's folder. Its owner files, .owner/1, .owner/2, ..., name
// the owner: the newest counts, and only one process of all hosts can create the next one (O_EXCL). A training that
// lost its lease notices before its next write, and stops.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "registry/record.hpp"

namespace zs::experiment {

// Slurm's information about jobs: squeue, and sacct if the cluster keeps accounts.

struct Job {
  std::string state;     ///< "RUNNING", "PENDING", "NODE_FAIL", ...
  std::string nodes;     ///< "n[1-2]"; may be empty
  std::string reason{};  ///< why it is pending: "Priority", "JobHeldUser"; "" if unknown

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

/// Adds to `jobs` the lines ID|STATE|NODES of squeue (then |REASON) or sacct; existing jobs are kept. Skips other
/// lines, and sacct's lines of steps.
void add_jobs(std::string_view lines, std::map<std::string, Job>& jobs);

/// The owner of a run.
struct Holder {
  registry::Fields fields;  ///< host, process, user, Slurm's ids as registry::environment() has them; empty: none
  std::string text;         ///< "process 1234 on node07, since 2026-11-21T19:30:00Z"
  bool live = false;        ///< its training runs, or may run
  bool here = false;        ///< it certainly runs: a process of this host, or a job in the queue
  std::string basis;        ///< the evidence: "its process on this host is gone"
};

/// The owner of the run in `folder`: checks its process if that is on this host, else its Slurm job if Slurm answers,
/// else it may be live. None if the folder does not exist.
Holder holder(const std::string& folder);

/// The right of this process to write into a run's folder, for the lifetime of the object.
class Lease {
 public:
  /// Takes the lease. Throws Error, which names the owner and the remedy, if another live training holds it; also if
  /// that only may be live, unless `take_over`.
  Lease(std::string folder, bool take_over);
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  /// Throws Error if the run was taken over or removed since.
  void check() const;
  /// Whether check() would succeed.
  bool held() const;

 private:
  std::string folder_;
  std::int64_t number_ = 0;
};

}  // namespace zs::experiment
