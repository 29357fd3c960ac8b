// SPDX-License-Identifier: Apache-2.0
// How this process was launched, by its environment: whether it is one of several tasks, and whether they can find each
// other. A script's shell inside a Slurm allocation has most of Slurm's variables but is one process.
#pragma once
#include <functional>
#include <string>

namespace zs::comm {

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
