// SPDX-License-Identifier: Apache-2.0
#include "comm/start.hpp"

#include <doctest/doctest.h>

#include <map>

namespace zs::comm {
namespace {

Launch launched(const std::map<std::string, std::string>& variables) {
  return launch([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST_CASE("nothing launched a plain process") {
  const Launch plain = launched({{"HOME", "/root"}});
  CHECK(plain.by.empty());
  CHECK(plain.tasks == 1);
}

TEST_CASE("the shell of a batch script is one process, whatever the allocation holds") {
  const Launch shell = launched({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}});
  CHECK(shell.by.empty());
  CHECK(shell.tasks == 1);
}

TEST_CASE("srun with pmix, and srun without") {
  std::map<std::string, std::string> step = {
      {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "2"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}};
  CHECK(launched(step).by == "srun");
  CHECK(launched(step).tasks == 4);
  CHECK(!launched(step).connected);
  CHECK(singletons_text(launched(step)).starts_with("srun started 4 tasks, but MPI sees one"));
  step.emplace("PMIX_RANK", "2");
  CHECK(launched(step).connected);
}

TEST_CASE("mpirun counts its own ranks, not the tasks of the step around it") {
  const Launch rank = launched({{"OMPI_COMM_WORLD_SIZE", "8"},
                                {"PMIX_RANK", "3"},
                                {"SLURM_PROCID", "0"},
                                {"SLURM_STEP_ID", "0"},
                                {"SLURM_STEP_NUM_TASKS", "2"}});
  CHECK(rank.by == "mpirun");
  CHECK(rank.tasks == 8);
  CHECK(rank.connected);
}

TEST_CASE("torchrun and its like give ranks a store to meet at; one of them, or mpirun's ranks, are ranks") {
  std::map<std::string, std::string> elastic = {
      {"RANK", "1"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "localhost"}};
  CHECK(launched(elastic).by == "a launcher of PyTorch");
  elastic.emplace("TORCHELASTIC_RUN_ID", "none");
  CHECK(launched(elastic).by == "torchrun");
  CHECK(launched(elastic).tasks == 4);
  CHECK(launched(elastic).connected);
  CHECK(launched(elastic).by_pytorch);
  elastic.emplace("OMPI_COMM_WORLD_SIZE", "2");
  CHECK(launched(elastic).by == "mpirun");
  CHECK(launched({{"RANK", "0"}, {"LOCAL_RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "localhost"}}).tasks == 1);
  // A script may leave one of them in the environment.
  CHECK(launched({{"RANK", "0"}, {"WORLD_SIZE", "4"}}).by.empty());
}

TEST_CASE("another MPI's mpirun, and a count that is no number") {
  CHECK(launched({{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}}).tasks == 2);
  CHECK(launched({{"PMI_SIZE", "two"}}).by.empty());
  CHECK(launched({{"PMIX_RANK", "0"}}).tasks == 0);
}

}  // namespace
}  // namespace zs::comm
