// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/error.hpp"
#include "device/view.hpp"

namespace zs::device {

/// allocate() found no room: the text says what was asked for, and what this process holds there.
class OutOfMemory : public Error {
 public:
  OutOfMemory(const Device& device, std::int64_t asked);
};

}  // namespace zs::device
