// SPDX-License-Identifier: Apache-2.0
#include "device/moment.hpp"

#include "device/backend.hpp"

namespace zs::device {

Moment Moment::now(const Device& device) {
  Moment moment;
  if (device.kind == Device::Kind::cpu)
    moment.time_ = std::chrono::steady_clock::now();
  else
    moment.mark_ = cuda::backend().mark(device);
  return moment;
}

double Moment::since(const Moment& earlier) const {
  if (mark_) return cuda::backend().seconds_between(earlier.mark_.get(), mark_.get());
  return std::chrono::duration<double>(time_ - earlier.time_).count();
}

}  // namespace zs::device
