// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "comm/group.hpp"

namespace zs::comm {

/// The ranks of `host`, with memory on `device` (every rank its own GPU), moved by NCCL; `host` keeps the control
/// traffic. A reduce-scatter sends slices point to point and adds them here in the canonical order, since NCCL's own
/// sums have another order on every topology. Throws zs::Error where NCCL cannot start, naming the ranks that share a
/// GPU. COLLECTIVE.
std::unique_ptr<Group> nccl(std::unique_ptr<Group> host, const device::Device& device, const Options& options = {});

}  // namespace zs::comm
