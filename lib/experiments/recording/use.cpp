// SPDX-License-Identifier: Apache-2.0
#include "recording/use.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/number.hpp"
#include "base/words.hpp"

namespace zs::recording {
namespace {

// The state of this machine's GPUs from NVIDIA's management library, loaded if installed; zs does not require it. Names
// and values of the interface: NVML API reference guide, nvml.h.

/// The state of a GPU at a moment; negative values are unknown.
struct GpuUse {
  double busy = -1;          ///< per cent of the time since the last sample in which a kernel ran
  std::int64_t memory = -1;  ///< bytes in use
  double power = -1;         ///< W
};

using Device = void*;

struct Utilization {
  unsigned gpu = 0, memory = 0;  // per cent
};
struct Memory {
  unsigned long long total = 0, free = 0, used = 0;  // bytes
};

/// Calls the function of that name; false if there is none, or if it fails.
template <typename... Arguments>
bool call(void* library, const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(library, name));
  return function && function(arguments...) == 0;
}

/// The GPUs that CUDA would show: "0,1", or "GPU-5c89...". Words after an invalid one do not count.
std::vector<Device> visible(void* library) {
  std::vector<Device> devices;
  Device device = nullptr;
  const auto by_index = [&](unsigned index) { return call(library, "nvmlDeviceGetHandleByIndex_v2", index, &device); };
  if (const char* const chosen = std::getenv("CUDA_VISIBLE_DEVICES")) {
    for (const std::string& word : split(chosen, ",")) {
      const auto index = parse_int(word);
      const bool found = index && *index >= 0 ? by_index(static_cast<unsigned>(*index))
                                              : call(library, "nvmlDeviceGetHandleByUUID", word.c_str(), &device);
      if (!found) break;
      devices.push_back(device);
    }
    return devices;
  }
  unsigned count = 0;
  call(library, "nvmlDeviceGetCount_v2", &count);
  for (unsigned i = 0; i < count; ++i) {
    if (by_index(i)) devices.push_back(device);
  }
  return devices;
}

void unload(void* library) {
  call(library, "nvmlShutdown");
  ::dlclose(library);
}

class Nvml {
 public:
  /// Finds the GPUs in $CUDA_VISIBLE_DEVICES (all if it is not set); none without the library. Takes some ten
  /// milliseconds with it.
  Nvml() {
    if (!library_ || !call(library_.get(), "nvmlInit_v2")) return;
    devices_ = visible(library_.get());
    if (devices_.empty()) return;
    std::array<char, 96> text{};
    const auto size = static_cast<unsigned>(text.size());
    if (call(library_.get(), "nvmlDeviceGetName", devices_[0], text.data(), size)) name_ = text.data();
    if (call(library_.get(), "nvmlSystemGetDriverVersion", text.data(), size)) driver_ = text.data();
  }

  std::size_t size() const { return devices_.size(); }
  std::vector<GpuUse> sample() const {
    std::vector<GpuUse> uses;
    for (const Device device : devices_) {
      GpuUse use;
      Utilization busy;
      Memory used;
      unsigned milliwatt = 0;
      const auto ask = [&](const char* name, auto* answer) { return call(library_.get(), name, device, answer); };
      if (ask("nvmlDeviceGetUtilizationRates", &busy)) use.busy = busy.gpu;
      if (ask("nvmlDeviceGetMemoryInfo", &used)) use.memory = static_cast<std::int64_t>(used.used);
      if (ask("nvmlDeviceGetPowerUsage", &milliwatt)) use.power = milliwatt * 1e-3;
      uses.push_back(use);
    }
    return uses;
  }
  /// The name of the GPUs ("NVIDIA H200"), and the driver's version; "" without GPUs.
  const std::string& name() const { return name_; }
  const std::string& driver() const { return driver_; }

 private:
  std::unique_ptr<void, void (*)(void*)> library_{::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL), unload};
  std::vector<Device> devices_;
  std::string name_, driver_;
};

using Clock = std::chrono::steady_clock;
using attribute::Type;

std::string content_of(const char* path) try { return Input(path).read_all(); } catch (const Error&) {
  return "";
}

/// Seconds that all processors have worked since the host began: all but idle and waiting for disks. -1: not known.
double busy_seconds() {
  std::istringstream line(content_of("/proc/stat"));
  std::string name;
  std::array<double, 8> ticks{};  // user nice system idle iowait irq softirq steal (proc(5))
  line >> name;
  for (double& each : ticks) line >> each;
  if (!line || name != "cpu") return -1;
  return (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

/// Bytes of the host's memory that are in use. -1: not known.
std::int64_t used_memory() {
  const std::string text = content_of("/proc/meminfo");
  const auto kilobytes = [&](const char* name) {
    const std::size_t at = text.find(name);
    std::istringstream rest(at == std::string::npos ? "" : text.substr(text.find(':', at) + 1, 32));
    std::int64_t value = -1;
    rest >> value;
    return rest ? value : -1;
  };
  const std::int64_t total = kilobytes("MemTotal"), free = kilobytes("MemAvailable");
  return total < 0 || free < 0 ? -1 : (total - free) * 1024;
}

double rounded(double value) { return static_cast<double>(static_cast<std::int64_t>(value * 100 + 0.5)) / 100; }

}  // namespace

const std::vector<metric::ColumnInfo>& use_columns() {
  static const std::vector<metric::ColumnInfo> columns = {{"gpu_utilization", Type::real, "%"},
                                                          {"gpu_memory", Type::integer, "bytes"},
                                                          {"gpu_power", Type::real, "W"},
                                                          {"host_cpus", Type::real, ""},
                                                          {"host_memory", Type::integer, "bytes"}};
  return columns;
}

std::vector<std::string> cells(const Use& use) {
  const auto text = [](const auto& value) { return value ? to_text(*value) : std::string(); };
  return {text(use.gpu_busy), text(use.gpu_memory), text(use.gpu_power), text(use.cpus_busy), text(use.host_memory)};
}

Use UseWatch::Sums::mean() const {
  Use use;
  const auto over = [](double sum, std::int64_t count) { return rounded(sum / static_cast<double>(count)); };
  if (gpu_samples > 0) use.gpu_busy = over(busy, gpu_samples);
  if (power_samples > 0) use.gpu_power = over(power, power_samples);
  if (cpu_samples > 0) use.cpus_busy = over(cpus, cpu_samples);
  if (gpu_memory >= 0) use.gpu_memory = gpu_memory;
  if (host_memory >= 0) use.host_memory = host_memory;
  return use;
}

UseWatch::UseWatch() : thread_([this](const std::stop_token& stop) { watch(stop); }) {}

void UseWatch::watch(const std::stop_token& stop) {
  const Nvml nvml;  // may take its time
  {
    const std::lock_guard lock(mutex_);
    gpu_ = nvml.name();
    driver_ = nvml.driver();
    gpus_ = nvml.size();
  }
  auto last = Clock::now();
  double worked = busy_seconds();
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_until(lock, stop, last + std::chrono::seconds(1), [] { return false; });
    }
    if (stop.stop_requested()) return;
    const auto now = Clock::now();
    const double elapsed = std::chrono::duration<double>(now - last).count(), works = busy_seconds();
    const std::vector<GpuUse> gpus = nvml.size() > 0 ? nvml.sample() : std::vector<GpuUse>();
    const std::int64_t memory = used_memory();
    const std::lock_guard lock(mutex_);
    double power = 0;
    for (const GpuUse& gpu : gpus) power += std::max(0.0, gpu.power);
    energy_ += power * elapsed;
    for (Sums* const sums : {&now_, &whole_}) {
      ++sums->samples;
      sums->host_memory = std::max(sums->host_memory, memory);
      if (worked >= 0 && works >= worked) sums->cpus += (works - worked) / elapsed, ++sums->cpu_samples;
      double busy = 0;
      std::int64_t known = 0;
      for (const GpuUse& gpu : gpus) {
        if (gpu.busy >= 0) busy += gpu.busy, ++known;
        sums->gpu_memory = std::max(sums->gpu_memory, gpu.memory);
      }
      if (known > 0) sums->busy += busy / static_cast<double>(known), ++sums->gpu_samples;
      if (power > 0) sums->power += power, ++sums->power_samples;
    }
    last = now;
    worked = works;
  }
}

std::optional<Use> UseWatch::take() {
  const std::lock_guard lock(mutex_);
  if (now_.samples == 0) return {};
  const Use use = now_.mean();
  now_ = {};
  return use;
}

metric::Writer::Facts UseWatch::facts() {
  const std::lock_guard lock(mutex_);
  metric::Writer::Facts facts;
  const Use use = whole_.mean();
  const std::vector<std::string> values = cells(use);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i].empty()) facts["use." + use_columns()[i].name] = values[i];
  }
  if (gpus_ == 0) return facts;
  facts["gpu"] = gpu_;
  facts["gpu_driver"] = driver_;
  facts["use.gpus"] = to_text(static_cast<std::int64_t>(gpus_));
  if (energy_ > 0) facts["use.gpu_energy"] = to_text(rounded(energy_));
  return facts;
}

}  // namespace zs::recording
