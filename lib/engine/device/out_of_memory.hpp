// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/error.hpp"
#include "device/view.hpp"

namespace zs::device {

/// Thrown by allocate() without memory: the text has the requested bytes, and those that this process uses there.
class OutOfMemory : public Error {
 public:
  OutOfMemory(const Device& device, std::int64_t asked);
};

}  // namespace zs::device
