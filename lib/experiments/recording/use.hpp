// SPDX-License-Identifier: Apache-2.0
// The use of this host and its GPUs, sampled once a second by a separate thread.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "metric/writer.hpp"

namespace zs::recording {

/// Figures over some samples; absent if unknown.
struct Use {
  std::optional<double> gpu_busy{};           ///< mean over GPUs and samples, per cent
  std::optional<std::int64_t> gpu_memory{};   ///< bytes, of the fullest GPU, maximum
  std::optional<double> gpu_power{};          ///< W, sum of all GPUs, mean
  std::optional<double> cpus_busy{};          ///< busy processors of the host, mean
  std::optional<std::int64_t> host_memory{};  ///< bytes in use on the host, maximum
};

/// The columns of a record for these figures, and their cells.
const std::vector<metric::ColumnInfo>& use_columns();
std::vector<std::string> cells(const Use& use);

class UseWatch {
 public:
  UseWatch();

  /// Figures of the samples since the last call; nothing if there were none. Thread-safe.
  std::optional<Use> take();
  /// Facts about the whole time: gpu, gpus, gpu_driver, gpu_energy (J), ... by name.
  metric::Writer::Facts facts();

 private:
  struct Sums {
    std::int64_t samples = 0, cpu_samples = 0, gpu_samples = 0, power_samples = 0;
    double busy = 0, power = 0, cpus = 0;
    std::int64_t gpu_memory = -1, host_memory = -1;
    Use mean() const;
  };
  void watch(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  Sums now_, whole_;
  double energy_ = 0;  // J
  std::string gpu_, driver_;
  std::size_t gpus_ = 0;
  std::jthread thread_;
};

}  // namespace zs::recording
