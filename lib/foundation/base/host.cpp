// SPDX-License-Identifier: Apache-2.0
#include "base/host.hpp"

#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <limits>

namespace zs {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string environment_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

namespace {

/// The limit of this process's control group and those around it: version 2's, and version 1's of memory.
std::int64_t group_memory() {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  const auto read = [&](const std::string& path) {
    std::int64_t bytes = 0;
    if (std::ifstream(path) >> bytes && bytes > 0) least = std::min(least, bytes);  // "max" is not a number
  };
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const bool second = line.starts_with("0::"), first = line.find(":memory:") != std::string::npos;
    if (!second && !first) continue;
    const std::string root = second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (std::string place = line.substr(line.rfind(':') + 1);; place.resize(place.rfind('/'))) {
      read(root + place + (second ? "/memory.max" : "/memory.limit_in_bytes"));
      if (place.rfind('/') == std::string::npos) break;
    }
  }
  return least;
}

}  // namespace

std::int64_t host_memory() {
  struct sysinfo info {};
  ::sysinfo(&info);
  const auto installed = static_cast<std::int64_t>((info.totalram + info.totalswap) * info.mem_unit);
  return std::min(installed, group_memory());
}

}  // namespace zs
