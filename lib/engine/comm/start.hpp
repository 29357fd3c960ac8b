// SPDX-License-Identifier: Apache-2.0
// How a group of ranks begins: by a launcher, alone, or as threads of a test.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace zs::comm {

class Group;

/// The settings of a new group.
struct Options {
  double timeout = 50;    ///< seconds that a collective waits for a rank before it throws
  int ranks_of_host = 0;  ///< for in_process(): the simulated number of ranks per host; 0: all on this one
};

/// For tests (in_process_test.cpp): a group for each of `ranks` threads. If one throws, the others' waits throw too.
std::vector<std::unique_ptr<Group>> in_process(int ranks, const Options& options = {});

/// A group of one rank, without any thread or MPI.
std::unique_ptr<Group> single(const Options& options = {});

/// Runs `body` on `ranks` threads, each with its group of in_process(ranks); returns when all have ended. A rank that
/// throws aborts the group; the first exception is rethrown here.
void run_in_process(int ranks, const std::function<void(Group&)>& body, const Options& options = {});

/// The ranks started by mpirun or srun, or by torchrun and similar launchers, whose ranks meet at a store without MPI;
/// single() if there is one or no launcher. Calls MPI_Init_thread, and MPI_Finalize when the group and all its work are
/// destroyed, except during an exception. Call it once per process. Throws zs::Error if the launcher announces more
/// tasks than MPI finds ("N times rank 0 of 1").
std::unique_ptr<Group> mpi(const Options& options = {});

/// Ends the job of all MPI ranks with status 2, also after an exception has destroyed the group; does nothing without
/// MPI. Call it after the error was reported.
void abort_job() noexcept;

/// How this process was launched, by its environment: whether it is one of several tasks, and whether they can find
/// each other. A script's shell inside a Slurm allocation has most of Slurm's variables but is one process.
struct Launch {
  std::string by;  ///< "mpirun", "srun", "PMI", "PMIx", "torchrun", "a launcher of PyTorch"; empty if nothing launched
                   ///< this process
  int tasks = 1;   ///< how many it launched; 0 if unknown
  bool connected = false;   ///< it provided the means to find the others
  bool by_pytorch = false;  ///< these are a store's address, MASTER_ADDR and MASTER_PORT
};

using Environment = std::function<const char*(const char*)>;  // as std::getenv
Launch launch(const Environment& get);

/// The error for tasks that are each rank 0 of 1.
std::string singletons_text(const Launch& launch);

}  // namespace zs::comm
