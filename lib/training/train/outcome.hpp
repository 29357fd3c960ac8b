// SPDX-License-Identifier: Apache-2.0
// The results of a training: its output while it runs, and its end.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "metric/writer.hpp"

namespace zs::train {

/// Receives a run's output; called only on rank 0.
struct Sink {
  std::function<void(const std::string& line)> log;  ///< a line for the log, without its end
  std::vector<metric::Writer*> metrics;              ///< each gets every step; flush(true) before a checkpoint
  std::function<void(const metric::Table& records, std::int64_t steps)> progress;  ///< after every step
};

/// The result of a training.
struct Outcome {
  std::string state_digest;
  double final_loss = 0;                     ///< of the last step
  double valid_loss = 0;                     ///< of the last evaluation; absent_real() if there was none
  double iteration_time = 0;                 ///< s, mean without the first timing_warmup steps
  double throughput = 0;                     ///< tokens, or images, per second over the same steps
  double samples_per_second = 0;             ///< over the same steps
  std::int64_t alloc_mem = 0, peak_mem = 0;  ///< bytes, the maximum over ranks
  std::int64_t steps = 0;                    ///< done
  /// About the whole training, by the names of the attribute table: its size, its epochs, its evaluations.
  std::vector<std::pair<std::string, std::string>> facts{};
  bool stopped = false;  ///< by a signal, with everything saved
  std::string diverged;  ///< the quantity that is not finite, and its step: "the loss is nan at step 3"; or ""
};

}  // namespace zs::train
