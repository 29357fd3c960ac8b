// SPDX-License-Identifier: Apache-2.0
// The state of this machine's GPUs from NVIDIA's management library, loaded if installed; zs does not require it. Names
// and values of the interface: NVML API reference guide, nvml.h.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace zs::recording {

/// The state of a GPU at a moment; negative values are unknown.
struct GpuUse {
  double busy = -1;          ///< per cent of the time since the last sample in which a kernel ran
  std::int64_t memory = -1;  ///< bytes in use
  double power = -1;         ///< W
};

class Nvml {
 public:
  /// Finds the GPUs in $CUDA_VISIBLE_DEVICES (all if it is not set); none without the library. Takes some ten
  /// milliseconds with it.
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::size_t size() const { return devices_.size(); }
  std::vector<GpuUse> sample() const;
  /// The name of the GPUs ("NVIDIA H200"), and the driver's version; "" without GPUs.
  const std::string& name() const { return name_; }
  const std::string& driver() const { return driver_; }

 private:
  void* library_ = nullptr;
  std::vector<void*> devices_;
  std::string name_, driver_;
};

}  // namespace zs::recording
