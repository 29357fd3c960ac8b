// SPDX-License-Identifier: Apache-2.0
// One training at a time writes into a run's folder. Who may is said by its owner files, .owner/1, .owner/2, ...: the
// newest counts, and the next one can be made once, by one process of all hosts (O_EXCL). A training that has lost its
// lease sees it before it writes the next time, and stops.
#pragma once
#include <cstdint>
#include <string>

#include "registry/record.hpp"

namespace zs::experiment {

/// Whoever holds a run.
struct Holder {
  registry::Fields fields;  ///< host, process, user, Slurm's ids as registry::environment() has them; empty: nobody
  std::string text;         ///< "process 1234 on node07, since 2026-11-21T19:30:00Z"
  bool live = false;        ///< its training goes on, or may
  bool here = false;        ///< it is known to live: a process of this host, or a job in the queue
  std::string basis;        ///< what that was concluded from: "its process on this host is gone"
};

/// Who holds the run in `folder`: by its process where that is one of this host, else by its Slurm job if Slurm
/// answers, else it may live. Nobody where the folder is not there.
Holder holder(const std::string& folder);

/// The right of this process to write into a run's folder, from the constructor to the destructor.
class Lease {
 public:
  /// Takes it. Throws Error, which says who has it and what to do, where another training holds it and lives;
  /// where it only may live, unless `take_over`.
  Lease(std::string folder, bool take_over);
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  /// Throws Error where the run was taken over, or removed, since.
  void check() const;
  /// Whether check() would pass.
  bool held() const;

 private:
  std::string folder_;
  std::int64_t number_ = 0;
};

}  // namespace zs::experiment
