// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

namespace zs {

/// This machine's name, as gethostname(2) has it; "" if it has none.
std::string host_name();

/// Bytes of memory that processes of this job may fill: the machine's, with its swap space, or what a container or
/// Slurm allows of it.
std::int64_t host_memory();

}  // namespace zs
