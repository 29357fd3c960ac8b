// SPDX-License-Identifier: Apache-2.0
// The first bytes of an input, by which its kind is recognized.
#pragma once
#include <cstddef>
#include <string>

#include "base/error.hpp"
#include "base/file.hpp"

namespace zs {

/// Up to `bytes` of an input's content. A packed file may be cut: it gives what can be unpacked. Throws Error if that
/// is nothing.
inline std::string read_start(Input& input, std::size_t bytes) {
  std::string start(bytes, '\0');
  std::size_t used = 0;
  try {
    for (std::size_t count = 1; used < bytes && count > 0; used += count)
      count = input.read(start.data() + used, bytes - used);
  } catch (const Error&) {
    if (used == 0) throw;
  }
  start.resize(used);
  return start;
}

}  // namespace zs
