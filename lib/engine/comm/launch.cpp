// SPDX-License-Identifier: Apache-2.0
#include "comm/launch.hpp"

#include "base/number.hpp"

namespace zs::comm {
namespace {

int count_of(const char* text) {
  const auto count = text ? parse_int(text) : std::nullopt;
  return count && *count > 0 ? static_cast<int>(*count) : 0;
}

}  // namespace

Launch launch(const Environment& get) {
  const bool pmix = get("PMIX_RANK") != nullptr;
  const bool pmi = get("PMI_RANK") || get("PMI_FD");
  // mpirun first: below it, the variables of the step that started its daemons may show through.
  if (const int tasks = count_of(get("OMPI_COMM_WORLD_SIZE"))) return {"mpirun", tasks, pmix};
  if (const int tasks = count_of(get("PMI_SIZE"))) return {"PMI", tasks, true};
  // Only srun sets SLURM_STEP_NUM_TASKS; SLURM_NTASKS and SLURM_PROCID are there in the batch script's shell too.
  const int tasks = get("SLURM_STEP_ID") && get("SLURM_PROCID") ? count_of(get("SLURM_STEP_NUM_TASKS")) : 0;
  if (tasks > 0) return {"srun", tasks, pmix || pmi};
  if (pmix) return {"PMIx", 0, true};
  // Variables that PyTorch's launchers set (torchrun, accelerate, deepspeed). A launch of one process is like no
  // launch.
  const int processes = get("RANK") && get("LOCAL_RANK") && get("MASTER_ADDR") ? count_of(get("WORLD_SIZE")) : 0;
  if (processes > 1) return {get("TORCHELASTIC_RUN_ID") ? "torchrun" : "a launcher of PyTorch", processes, true, true};
  return {};
}

std::string singletons_text(const Launch& launch) {
  const std::string tasks = std::to_string(launch.tasks);
  return launch.by + " started " + tasks + " tasks, but MPI sees one: each would be rank 0 of 1; " +
         (launch.by == "srun" ? "start them with srun --mpi=pmix (srun --mpi=list shows what the cluster has) or mpirun"
                              : "start them with the mpirun of the MPI that this program was built with");
}

}  // namespace zs::comm
