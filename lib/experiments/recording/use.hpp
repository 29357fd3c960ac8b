// SPDX-License-Identifier: Apache-2.0
// How busy this host and its GPUs are, looked at once a second by a thread of its own.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "metric/writer.hpp"

namespace zs::recording {

/// Over some samples; absent where nothing is known.
struct Use {
  std::optional<double> gpu_busy{};           ///< mean over GPUs and samples, per cent
  std::optional<std::int64_t> gpu_memory{};   ///< bytes, of the fullest GPU, the largest sample
  std::optional<double> gpu_power{};          ///< W, of all GPUs together, mean
  std::optional<double> cpus_busy{};          ///< processors of the host that worked, mean
  std::optional<std::int64_t> host_memory{};  ///< bytes that are in use on the host, the largest sample
};

/// The columns of a record that say it, and their cells.
const std::vector<metric::ColumnInfo>& use_columns();
std::vector<std::string> cells(const Use& use);

class UseWatch {
 public:
  UseWatch();
  ~UseWatch();
  UseWatch(const UseWatch&) = delete;
  UseWatch& operator=(const UseWatch&) = delete;

  /// Over the samples since the last call; nothing where there was none. Any thread may call.
  std::optional<Use> take();
  /// What is known of the whole time: gpu, gpus, gpu_driver, gpu_energy (J), ... by name.
  metric::Writer::Facts facts();

 private:
  struct Sums {
    std::int64_t samples = 0, cpu_samples = 0, gpu_samples = 0, power_samples = 0;
    double busy = 0, power = 0, cpus = 0;
    std::int64_t gpu_memory = -1, host_memory = -1;
    Use mean() const;
  };
  void watch();

  std::mutex mutex_;
  std::condition_variable wake_;
  bool end_ = false;
  Sums now_, whole_;
  double energy_ = 0;  // J
  std::string gpu_, driver_;
  std::size_t gpus_ = 0;
  std::thread thread_;
};

}  // namespace zs::recording
