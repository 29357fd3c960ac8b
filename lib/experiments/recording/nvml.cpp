// SPDX-License-Identifier: Apache-2.0
#include "recording/nvml.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <sstream>

#include "base/number.hpp"

namespace zs::recording {
namespace {

using Device = void*;
constexpr int kSuccess = 0;

struct Utilization {
  unsigned gpu = 0, memory = 0;  // per cent
};
struct Memory {
  unsigned long long total = 0, free = 0, used = 0;  // bytes
};

/// The function of that name: `Call` is its type.
template <typename Call>
Call function(void* library, const char* name) {
  return reinterpret_cast<Call>(::dlsym(library, name));
}

using Init = int (*)();
using Count = int (*)(unsigned*);
using ByIndex = int (*)(unsigned, Device*);
using ByName = int (*)(const char*, Device*);
using Text = int (*)(Device, char*, unsigned);
using SystemText = int (*)(char*, unsigned);
using GetUtilization = int (*)(Device, Utilization*);
using GetMemory = int (*)(Device, Memory*);
using GetPower = int (*)(Device, unsigned*);

/// The GPUs that CUDA would show: "0,1", or "GPU-5c89...". Words after an invalid one do not count.
std::vector<Device> visible(void* library) {
  std::vector<Device> devices;
  const auto by_index = function<ByIndex>(library, "nvmlDeviceGetHandleByIndex_v2");
  const auto by_name = function<ByName>(library, "nvmlDeviceGetHandleByUUID");
  const char* const chosen = std::getenv("CUDA_VISIBLE_DEVICES");
  Device device = nullptr;
  if (chosen) {
    std::istringstream words(chosen);
    for (std::string word; std::getline(words, word, ',');) {
      const auto index = parse_int(word);
      const bool found = index && *index >= 0 ? by_index && by_index(static_cast<unsigned>(*index), &device) == kSuccess
                                              : by_name && by_name(word.c_str(), &device) == kSuccess;
      if (!found) break;
      devices.push_back(device);
    }
    return devices;
  }
  unsigned count = 0;
  const auto get_count = function<Count>(library, "nvmlDeviceGetCount_v2");
  if (!get_count || !by_index || get_count(&count) != kSuccess) return devices;
  for (unsigned i = 0; i < count; ++i) {
    if (by_index(i, &device) == kSuccess) devices.push_back(device);
  }
  return devices;
}

}  // namespace

Nvml::Nvml() {
  library_ = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library_) return;
  const auto init = function<Init>(library_, "nvmlInit_v2");
  if (!init || init() != kSuccess) {
    ::dlclose(library_);
    library_ = nullptr;
    return;
  }
  devices_ = visible(library_);
  std::array<char, 96> text{};
  if (const auto name = function<Text>(library_, "nvmlDeviceGetName");
      name && !devices_.empty() && name(devices_[0], text.data(), text.size()) == kSuccess)
    name_ = text.data();
  if (const auto driver = function<SystemText>(library_, "nvmlSystemGetDriverVersion");
      driver && !devices_.empty() && driver(text.data(), text.size()) == kSuccess)
    driver_ = text.data();
}

Nvml::~Nvml() {
  if (!library_) return;
  if (const auto end = function<Init>(library_, "nvmlShutdown")) end();
  ::dlclose(library_);
}

std::vector<GpuUse> Nvml::sample() const {
  std::vector<GpuUse> all;
  const auto utilization = function<GetUtilization>(library_, "nvmlDeviceGetUtilizationRates");
  const auto memory = function<GetMemory>(library_, "nvmlDeviceGetMemoryInfo");
  const auto power = function<GetPower>(library_, "nvmlDeviceGetPowerUsage");
  for (const Device device : devices_) {
    GpuUse use;
    Utilization busy;
    Memory used;
    unsigned milliwatt = 0;
    if (utilization && utilization(device, &busy) == kSuccess) use.busy = busy.gpu;
    if (memory && memory(device, &used) == kSuccess) use.memory = static_cast<std::int64_t>(used.used);
    if (power && power(device, &milliwatt) == kSuccess) use.power = milliwatt * 1e-3;
    all.push_back(use);
  }
  return all;
}

}  // namespace zs::recording
