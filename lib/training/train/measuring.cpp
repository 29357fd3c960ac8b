// SPDX-License-Identifier: Apache-2.0
#include "train/measuring.hpp"

#include <ATen/Parallel.h>
#include <sched.h>

#include <algorithm>

#include "base/file.hpp"
#include "comm/nodes.hpp"
#include "device/memory.hpp"
#include "plan/memory.hpp"
#include "zero/accounting.hpp"

namespace zs::train {
namespace {

/// Processors of the first rank's host that its ranks may use, over the threads of a rank. COLLECTIVE.
int slots_of_node(comm::Group& group) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof mine, &mine);
  const auto all = comm::exchange_values(group, mine, "exchange of what was measured");
  cpu_set_t together = all.front();
  for (int rank = 1; rank < comm::ranks_of_first_node(group); ++rank)
    CPU_OR(&together, &together, &all[static_cast<std::size_t>(rank)]);
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
  for (const std::string& its : group_.all_gather_object(mine, "exchange of what was measured"))
    ranks.push_back(plan::profile_from_json(its, "the profile of a rank"));
  const auto all = std::make_shared<const plan::Profile>(plan::profile_of(ranks));
  if (group_.rank() == 0) write_file(folder + "/profile.json", plan::to_json(*all));
  engine_.plans().measured(all);
  return true;
}

}  // namespace zs::train
