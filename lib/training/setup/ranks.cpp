// SPDX-License-Identifier: Apache-2.0
#include "setup/ranks.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/error.hpp"
#include "base/host.hpp"
#include "cli/engine.hpp"
#include "comm/agree.hpp"
#include "comm/gpu_group.hpp"
#include "device/backend.hpp"
#include "device/memory.hpp"
#include "setup/signals.hpp"

namespace zs::setup {
namespace {

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

namespace cuda = device::cuda;

/// The GPUs that this job was given, as its environment says: "SLURM_JOB_GPUS=0,1"; "" for none.
std::string given_gpus() {
  for (const char* name : {"SLURM_JOB_GPUS", "SLURM_GPUS_ON_NODE", "CUDA_VISIBLE_DEVICES"}) {
    if (const std::string given = environment_variable(name); !given.empty()) return std::string(name) + "=" + given;
  }
  return "";
}

/// Whether this rank computes on a GPU. A job with GPUs that it cannot use is an error: its owner pays for them.
bool takes_gpu(const std::string& device) {
  if (device == "cpu" || (device == "auto" && !cuda::driver_is_there())) return false;
  std::string why = cuda::load();
  if (why.empty() && cuda::backend().visible_gpus() == 0)
    why = "this process sees no GPU: is the driver loaded, and is CUDA_VISIBLE_DEVICES set right?";
  if (why.empty()) return true;
  if (device == "cuda") throw Error("--device cuda: " + why);
  if (const std::string given = given_gpus(); !given.empty())
    throw Error("this job has GPUs (" + given + ") and zs cannot use them: " + why +
                "; --device cpu computes on the processors");
  return false;
}

/// The GPU of this rank: its place among the ranks of its host, counted round the GPUs that it sees.
device::Device own_gpu(const comm::Group& group) {
  int before = 0;
  for (int rank = 0; rank < group.rank(); ++rank) before += group.host(rank) == group.host(group.rank());
  return {device::Device::Kind::cuda, before % cuda::backend().visible_gpus()};
}

std::unique_ptr<comm::Group> on_gpu(std::unique_ptr<comm::Group> host, const std::string& transport,
                                    const comm::Options& options, bool repeat) {
  const device::Device device = own_gpu(*host);
  cuda::backend().use(device.index);
  const std::string shared = comm::shared_gpu(*host, device);
  if (transport == "nccl" && !shared.empty())
    throw comm::SharedError("--comm nccl: " + shared +
                            ", which NCCL refuses: start one rank for each GPU, or use --comm mpi");
  return transport != "mpi" && shared.empty() ? comm::nccl(std::move(host), device, options, repeat)
                                              : comm::staged(std::move(host), device);
}

}  // namespace

std::string idle_gpus(const std::string& asked) {
  if (asked != "auto" || cuda::driver_is_there()) return "";
  const std::string given = given_gpus();
  return given.empty()
             ? ""
             : "this job has GPUs (" + given +
                   "), and there is no driver of NVIDIA's GPUs here: the processors compute, and the GPUs are "
                   "idle (is this a container without them? --device cpu says that it is meant)";
}

std::string chosen_device(const std::string& asked) { return takes_gpu(asked) ? "cuda" : "cpu"; }

comm::Group& Ranks::start(double timeout) {
  if (group_) return *group_;
  ignore_closed_pipes();
  device::count_tensors();
  device::keep_freed_memory();
  const char* const threads = std::getenv("OMP_NUM_THREADS");
  at::set_num_threads(threads ? std::max(1, std::atoi(threads)) : 1);
  at::set_num_interop_threads(1);
  options_ = {.timeout = timeout};
  group_ = comm::mpi(options_);
  return *group_;
}

comm::Group& Ranks::use(const std::string& device, const std::string& transport, bool repeat) {
  const bool on_host = group_->device().kind == device::Device::Kind::cpu;
  if (on_host && takes_gpu(device)) group_ = on_gpu(std::move(group_), transport, options_, repeat);
  return *group_;
}

cli::Hooks Ranks::hooks() {
  return {
      .place =
          [this] {
            // An error that all ranks have is reported by rank 0, whose abort ends the others before they report it.
            // Before the ranks have met no rank knows which that is.
            const bool by_rank_0 = shared();
            if ((group_ ? group_->rank() : cli::launched_rank()) > 0)
              std::this_thread::sleep_for(std::chrono::milliseconds(by_rank_0 ? 20000 : 500));
            if (!group_ || group_->size() == 1 || by_rank_0) return std::string();
            return "rank " + std::to_string(group_->rank()) + " on " + group_->host(group_->rank()) + ": ";
          },
      .after =
          [this] {
            if (group_ && group_->size() > 1) group_->abort();
          },
  };
}

}  // namespace zs::setup
