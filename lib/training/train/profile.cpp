// SPDX-License-Identifier: Apache-2.0
#include "train/profile.hpp"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <sched.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <torch/version.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/compressed.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/temporary.hpp"
#include "comm/agree.hpp"
#include "comm/nodes.hpp"
#include "device/memory.hpp"
#include "plan/memory.hpp"
#include "zero/accounting.hpp"

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

namespace {

/// Processors of the first rank's host that its ranks may use, over the threads of a rank. COLLECTIVE.
int slots_of_node(comm::Group& group) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);
  const auto masks = comm::exchange_values(group, mine, "exchange of what was measured");
  cpu_set_t together = masks.front();
  for (int rank = 1; rank < comm::ranks_of_first_node(group); ++rank)
    CPU_OR(&together, &together, &masks[static_cast<std::size_t>(rank)]);
  return std::max(1, CPU_COUNT(&together) / at::get_num_threads());
}

}  // namespace

Measuring::Measuring(comm::Group& group, zero::Engine& engine, const Settings& settings, const model::Model& model,
                     std::int64_t done)
    : group_(group),
      engine_(engine),
      settings_(settings),
      model_(model),
      first_((settings.deepcompile || settings.passes.size() > 1) && !settings.plan_profile ? done + 2 : 0) {}

void Measuring::before(std::int64_t step) {
  if (!measures(step)) return;
  engine_.time([this](const plan::Op& op, double seconds, std::int64_t bytes) { timings_.add(op, seconds, bytes); });
}

bool Measuring::after(std::int64_t step, double seconds, const std::string& folder) {
  if (!measures(step)) return false;
  engine_.time({});
  timings_.end_step(seconds);
  if (timings_.steps() < kSteps) return false;
  plan::Profile profile;
  profile.model = model_.name;
  profile.device = device::to_text(group_.device());
  profile.shape = engine_.plan().shape;
  profile.bytes_per_parameter = static_cast<int>(at::elementSize(settings_.engine.dtype));
  if (model_.takes_images()) profile.noun = "images";
  profile.count = settings_.batch_size * (model_.takes_images() ? 1 : settings_.model.seq_length) / settings_.sequence;
  profile.node = comm::ranks_of_first_node(group_);
  profile.overlaps = group_.device().kind != device::Device::Kind::cpu;
  profile.peak = static_cast<double>(device::statistics(group_.device()).peak);
  profile.state = static_cast<double>(zero::state_bytes(engine_));
  profile.slots = profile.overlaps ? 0 : slots_of_node(group_);
  profile.config = model_.config_json;
  std::vector<plan::Profile> ranks;
  profile = timings_.into(std::move(profile));
  // The peak without passes: predictions start from it.
  if (profile.overlaps)
    profile.peak +=
        plan::peak_bytes(plan::baseline(profile.shape), profile) - plan::peak_bytes(engine_.plan(), profile);
  const std::string mine = plan::to_json(profile);
  for (const std::string& text : group_.all_gather_object(mine, "exchange of what was measured"))
    ranks.push_back(plan::profile_from_json(text, "the profile of a rank"));
  const auto merged = std::make_shared<const plan::Profile>(plan::profile_of(ranks));
  if (group_.rank() == 0) write_file(folder + "/profile.json", plan::to_json(*merged));
  engine_.plans().measured(merged);
  return true;
}

}  // namespace zs::train
