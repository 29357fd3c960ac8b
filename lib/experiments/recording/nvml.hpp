// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's management library says of the GPUs of this machine. It is loaded where there is one; zs needs none.
// Names and values of the interface: NVML API reference guide, nvml.h.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace zs::recording {

/// A GPU at a moment; a negative value is not known.
struct GpuUse {
  double busy = -1;          ///< per cent of the time since the last sample during which a kernel ran
  std::int64_t memory = -1;  ///< bytes in use
  double power = -1;         ///< W
};

class Nvml {
 public:
  /// Finds the GPUs that $CUDA_VISIBLE_DEVICES leaves (all without it); none where there is no library. Takes some
  /// ten milliseconds where there is one.
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  std::size_t size() const { return devices_.size(); }
  std::vector<GpuUse> sample() const;
  /// The name of the GPUs ("NVIDIA H200"), and the driver's version; "" where there are none.
  const std::string& name() const { return name_; }
  const std::string& driver() const { return driver_; }

 private:
  void* library_ = nullptr;
  std::vector<void*> devices_;
  std::string name_, driver_;
};

}  // namespace zs::recording
