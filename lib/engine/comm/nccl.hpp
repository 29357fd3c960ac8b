// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "comm/group.hpp"

namespace zs::comm {

/// Two ranks on one GPU, in words ("ranks 0 and 1 share the GPU node07 0000:0f:00.0"), or "" if each has its own.
/// COLLECTIVE.
std::string shared_gpu(Group& host, const device::Device& device);

/// The ranks of `host`, with memory on `device`, moved by NCCL; `host` keeps the control traffic. A reduce-scatter
/// sends slices point to point and adds them here in the canonical order, since NCCL's own sums have another order on
/// every topology; on several nodes within each first (nodes.hpp). Unless sums `repeat` their bits, NCCL adds what it
/// can, as it likes and in the type of what it adds. Throws zs::Error where NCCL cannot start. REQUIRES: no
/// shared_gpu(). COLLECTIVE.
std::unique_ptr<Group> nccl(std::unique_ptr<Group> host, const device::Device& device, const Options& options = {},
                            bool repeat = true);

}  // namespace zs::comm
