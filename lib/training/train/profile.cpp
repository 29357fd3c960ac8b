// SPDX-License-Identifier: Apache-2.0
#include "train/profile.hpp"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.hpp"
#include "base/gzip.hpp"
#include "base/number.hpp"
#include "base/temporary.hpp"
#include "comm/agree.hpp"

namespace torch::autograd::profiler {
// Its header, torch/csrc/profiler/kineto_shim.h, needs Kineto's own, which no PyTorch brings.
TORCH_API void addMetadataJson(const std::string& key, const std::string& value);
}  // namespace torch::autograd::profiler

namespace zs::train {
namespace {

namespace profiler = torch::autograd::profiler;

std::set<torch::profiler::impl::ActivityType> activities(const comm::Group& group) {
  using torch::profiler::impl::ActivityType;
  if (group.device().kind == device::Device::Kind::cpu) return {ActivityType::CPU};
  return {ActivityType::CPU, ActivityType::CUDA};
}

/// Removes Kineto's temporary file, which stays behind if the disk is full.
struct Removed {
  std::string path;
  ~Removed() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

/// Whether a JSON file is complete; Kineto does not report failed writes.
bool ends_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(0, std::ios::end);
  const auto size = static_cast<std::int64_t>(file.tellg());
  std::string tail(16, ' ');
  file.seekg(std::max<std::int64_t>(0, size - 16));
  file.read(tail.data(), 16);
  const std::size_t last = tail.find_last_not_of(" \n");
  return size > 0 && last != std::string::npos && tail[last] == '}';
}

}  // namespace

/// "ProfilerStep#7", by which readers know where a step begins and ends.
struct Profile::Step {
  explicit Step(std::int64_t number) : name("ProfilerStep#" + to_text(number)), guard(at::RecordScope::USER_SCOPE) {
    if (guard.isActive()) guard.before(name.c_str());
  }
  std::string name;
  at::RecordFunction guard;
};

Profile::Profile(comm::Group& group, const ProfiledSteps& steps, const std::string& folder)
    : group_(group), steps_(steps) {
  if (steps.last == 0) return;
  const std::string common = comm::broadcast(group, folder, 0, "folder of the profile");
  comm::together(group, "making of " + common, [&] { std::filesystem::create_directories(common); });
  path_ = common + "/rank-" + to_text(std::int64_t{group.rank()}) + ".pt.trace.json.gz";
}

Profile::~Profile() {
  step_.reset();
  if (running_) profiler::disableProfiler();
}

void Profile::start() {
  using namespace torch::profiler::impl;
  // Kineto looks for a GPU in any case, and would print that there is none.
  if (group_.device().kind == device::Device::Kind::cpu) ::setenv("KINETO_LOG_LEVEL", "99", /*overwrite=*/0);
  const ProfilerConfig config(ProfilerState::KINETO, /*report_input_shapes=*/true, /*profile_memory=*/true);
  profiler::prepareProfiler(config, activities(group_));
  profiler::addMetadataJson("distributedInfo",
                            "{\"backend\": \"" +
                                std::string(group_.device().kind == device::Device::Kind::cpu ? "mpi" : "nccl") +
                                "\", \"rank\": " + to_text(std::int64_t{group_.rank()}) +
                                ", \"world_size\": " + to_text(std::int64_t{group_.size()}) + "}");
  profiler::enableProfiler(config, activities(group_), {});
  running_ = true;
}

void Profile::begin(std::int64_t step) {
  if (!has(step)) return;
  if (!running_) start();
  step_ = std::make_unique<Step>(step);
}

void Profile::end(std::int64_t step) {
  if (!has(step)) return;
  step_.reset();
  if (step == steps_.last) finish();
}

void Profile::finish() {
  step_.reset();
  if (!running_) return;
  running_ = false;
  const auto result = profiler::disableProfiler();
  const Temporary plain(path_);  // gone with this function
  const Removed unfinished{plain.path() + ".tmp"};
  result->save(plain.path());
  if (!ends_whole(plain.path())) throw Error(path_, 0, "the profiler could not write all of it: is the disk full?");
  gzip(plain.path(), path_);
}

}  // namespace zs::train
