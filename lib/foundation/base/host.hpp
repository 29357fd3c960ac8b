// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

namespace zs {

/// This machine's name, by gethostname(2); "" if it has none.
std::string host_name();

/// The value of an environment variable; "" if it is not set.
std::string environment_variable(const char* name);

/// Bytes of memory that the processes of this job may use: the machine's with its swap space, or the limit of a
/// container or of Slurm.
std::int64_t host_memory();

}  // namespace zs
