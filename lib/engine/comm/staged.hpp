// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "comm/group.hpp"

namespace zs::comm {

/// The ranks of `host`, with memory on `device`: collectives go through the host's memory.
std::unique_ptr<Group> staged(std::unique_ptr<Group> host, const device::Device& device);

}  // namespace zs::comm
