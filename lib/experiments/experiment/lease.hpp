// SPDX-License-Identifier: Apache-2.0
// Ensures that only one training at a time writes into a run's folder. Its owner files, .owner/1, .owner/2, ..., name
// the owner: the newest counts, and only one process of all hosts can create the next one (O_EXCL). A training that
// lost its lease notices before its next write, and stops.
#pragma once
#include <cstdint>
#include <string>

#include "registry/record.hpp"

namespace zs::experiment {

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
