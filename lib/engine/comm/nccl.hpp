// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "comm/group.hpp"

namespace zs::comm {

/// Describes two ranks on one GPU ("ranks 0 and 1 share the GPU node07 0000:0f:00.0"), or "" if there are none.
/// COLLECTIVE.
std::string shared_gpu(Group& host, const device::Device& device);

/// The ranks of `host`, with memory on `device`, connected by NCCL; `host` keeps the control traffic. A reduce-scatter
/// sends slices point to point and adds them here in the canonical order, since the order of NCCL's sums depends on the
/// topology; on several nodes within each node first (nodes.hpp). Unless sums must `repeat` their bits, NCCL adds where
/// it can, in any order and in the type of the operand. Throws zs::Error if NCCL cannot start. REQUIRES: no
/// shared_gpu(). COLLECTIVE.
std::unique_ptr<Group> nccl(std::unique_ptr<Group> host, const device::Device& device, const Options& options = {},
                            bool repeat = true);

}  // namespace zs::comm
