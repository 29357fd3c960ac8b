// SPDX-License-Identifier: Apache-2.0
#include "train/ranks.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "comm/agree.hpp"
#include "device/memory.hpp"
#include "train/signals.hpp"

namespace zs::train {
namespace {

/// The rank that a launcher gave this process, before MPI has started; 0 where there is none.
int launched_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (const char* const value = std::getenv(name)) return std::atoi(value);
  }
  return 0;
}

/// Whether the exception that is being handled is one that all ranks have.
bool shared() {
  try {
    throw;
  } catch (const comm::SharedError&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

comm::Group& Ranks::start(double timeout) {
  ignore_closed_pipes();
  device::count_tensors();
  const char* const threads = std::getenv("OMP_NUM_THREADS");
  at::set_num_threads(threads ? std::max(1, std::atoi(threads)) : 1);
  at::set_num_interop_threads(1);
  group_ = comm::mpi({.timeout = timeout});
  return *group_;
}

cli::Hooks Ranks::hooks() {
  return {
      .place =
          [this] {
            // An error that all ranks have is told by rank 0, whose abort ends the others before they speak. Before the
            // ranks have met nobody knows which that is.
            const bool told = shared();
            if ((group_ ? group_->rank() : launched_rank()) > 0)
              std::this_thread::sleep_for(std::chrono::milliseconds(told ? 20000 : 500));
            if (!group_ || group_->size() == 1 || told) return std::string();
            return "rank " + std::to_string(group_->rank()) + " on " + group_->host(group_->rank()) + ": ";
          },
      .after =
          [this] {
            if (group_ && group_->size() > 1) group_->abort();
          },
  };
}

}  // namespace zs::train
