// SPDX-License-Identifier: Apache-2.0
// Options of other trainers, such as those of ds_verify_loss's run.sh, that zs-train takes and does not need.
#pragma once
#include <array>

namespace zs::experiment {

struct Accepted {
  const char *name, *value, *why;
};
constexpr auto kAccepted = std::to_array<Accepted>({
    {"local_rank", "N", "ranks come from the environment of the launcher"},
    {"host_ip", "ADDRESS", "the launcher connects the ranks"},
    {"machine_rank", "N", "the launcher numbers the nodes"},
    {"eager", "", "kernels are plain without --compile"},
    {"attn_impl", "NAME", "each device has one way to compute attention"},
    {"sync_before_reduce", "", "the plan of a step orders its collectives"},
    {"sync_after_reduce", "", "the plan of a step orders its collectives"},
    {"sync_before_allgather", "", "the plan of a step orders its collectives"},
    {"sync_after_allgather", "", "the plan of a step orders its collectives"},
});

}  // namespace zs::experiment
