// SPDX-License-Identifier: Apache-2.0
#include "trace/queue.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/number.hpp"
#include "trace/sums.hpp"

namespace zs::trace {
namespace {

bool launches(std::string_view name) {
  static constexpr std::array<std::string_view, 12> kNames = {
      "cudaLaunchKernel",      "cudaLaunchKernelExC", "cuLaunchKernel",  "cuLaunchKernelEx",
      "cudaMemcpyAsync",       "cudaMemsetAsync",     "hipLaunchKernel", "hipExtModuleLaunchKernel",
      "hipModuleLaunchKernel", "hipExtLaunchKernel",  "hipMemcpyAsync",  "hipMemsetAsync"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace

std::map<std::int32_t, Queue> queues(const Trace& trace) {
  std::map<std::int32_t, std::vector<std::pair<double, int>>> streams;
  for (const Event& event : trace.events) {
    if (event.partner < 0 || event.gpu || !launches(trace.name(event))) continue;
    const Event& kernel = trace.events[static_cast<std::size_t>(event.partner)];
    if (kernel.stream < 0) continue;
    streams[kernel.stream].emplace_back(event.ts, 1);
    streams[kernel.stream].emplace_back(kernel.ts, -1);
  }
  std::map<std::int32_t, Queue> all;
  for (auto& [stream, changes] : streams) {
    std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    double now = 0;
    for (const auto& [time, change] : changes) {
      all[stream].times.push_back(time);
      all[stream].lengths.push_back(now += change);
    }
  }
  return all;
}

Sheet queue(const std::vector<Trace>& traces, const Settings&) {
  Sheet answer{{"rank", "stream", "count", "mean", "std", "min", "25%", "50%", "75%", "max", "full_time"}, {}};
  constexpr double kFull = 1024;  // the runtime makes the next launch wait
  for (const Trace& trace : traces) {
    for (auto& [stream, course] : queues(trace)) {
      std::vector<double>& lengths = course.lengths;
      double full = 0;
      for (std::size_t i = 1; i < lengths.size(); ++i) {
        if (lengths[i - 1] >= kFull) full += course.times[i] - course.times[i - 1];
      }
      const std::vector<std::string> all = figures(lengths);
      std::sort(lengths.begin(), lengths.end());
      answer.rows.push_back({rank_of(trace), to_text(std::int64_t{stream}), all[0], all[2], all[3], all[4],
                             text(quantile(lengths, 0.25)), text(quantile(lengths, 0.5)), text(quantile(lengths, 0.75)),
                             all[5], text(full)});
    }
  }
  return answer;
}

}  // namespace zs::trace
