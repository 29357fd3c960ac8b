// SPDX-License-Identifier: Apache-2.0
#include "device/view.hpp"

namespace zs::device {

std::string to_text(const Device& device) {
  return device.kind == Device::Kind::cpu ? "cpu" : "cuda:" + std::to_string(device.index);
}

}  // namespace zs::device
