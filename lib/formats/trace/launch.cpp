// SPDX-License-Identifier: Apache-2.0
#include "trace/launch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "base/number.hpp"
#include "trace/sums.hpp"

namespace zs::trace {
namespace {

constexpr double kShort = 50, kLate = 100;  // us

/// Whether it is a call that Holistic Trace Analysis counts as a launch, and what it launched is there.
bool launches(const Trace& trace, const Event& event) {
  if (event.gpu || event.partner < 0) return false;
  const std::string& called = trace.name(event);
  return called == "cudaLaunchKernel" || called == "cudaLaunchKernelExC" || called == "cudaMemcpyAsync" ||
         called == "cudaMemsetAsync";
}

const Event& launched(const Trace& trace, const Event& event) {
  return trace.events[static_cast<std::size_t>(event.partner)];
}

double delay(const Event& call, const Event& kernel) { return std::max(0.0, kernel.ts - call.ts - call.dur); }

bool launches(std::string_view name) {
  static constexpr std::array<std::string_view, 12> kNames = {
      "cudaLaunchKernel",      "cudaLaunchKernelExC", "cuLaunchKernel",  "cuLaunchKernelEx",
      "cudaMemcpyAsync",       "cudaMemsetAsync",     "hipLaunchKernel", "hipExtModuleLaunchKernel",
      "hipModuleLaunchKernel", "hipExtLaunchKernel",  "hipMemcpyAsync",  "hipMemsetAsync"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

}  // namespace

Sheet launch(const std::vector<Trace>& traces, const Settings&) {
  Sheet answer{
      {"rank", "launches", "delay_mean", "delay_50%", "delay_max", "short_kernels", "slow_calls", "late_starts"}, {}};
  for (const Trace& trace : traces) {
    std::vector<double> delays;
    std::size_t brief = 0, slow = 0, late = 0;
    for (const Event& event : trace.events) {
      if (!launches(trace, event)) continue;
      const Event& kernel = launched(trace, event);
      delays.push_back(delay(event, kernel));
      brief += kernel.dur < event.dur && event.dur <= kShort;
      slow += event.dur > kShort;
      late += delays.back() > kLate;
    }
    if (delays.empty()) continue;
    const std::vector<std::string> all = figures(delays);
    std::sort(delays.begin(), delays.end());
    answer.rows.push_back(
        {rank_of(trace), all[0], all[2], text(quantile(delays, 0.5)), all[5], text(brief), text(slow), text(late)});
  }
  return answer;
}

Sheet delays(const std::vector<Trace>& traces, const Settings& settings) {
  struct Row {
    std::vector<double> delays;
    std::size_t late = 0;
  };
  std::map<std::pair<std::string, std::string>, Row> rows;
  for (const Trace& trace : traces) {
    for (const Event& call : trace.events) {
      if (!launches(trace, call)) continue;
      const Event& kernel = launched(trace, call);
      const std::string name = call.caller < 0 ? "" : trace.name(trace.events[static_cast<std::size_t>(call.caller)]);
      Row& row = rows[{name, trace.name(kernel)}];
      row.delays.push_back(delay(call, kernel));
      row.late += row.delays.back() > kLate;
    }
  }
  std::vector<std::pair<const std::pair<std::string, std::string>*, const Row*>> late;
  for (const auto& [names, row] : rows) {
    if (row.late > 0) late.emplace_back(&names, &row);
  }
  std::stable_sort(late.begin(), late.end(),
                   [](const auto& a, const auto& b) { return a.second->late > b.second->late; });
  if (late.size() > settings.most) late.resize(settings.most);
  Sheet answer{{"operator", "kernel", "launches", "late_starts", "late_percent", "delay", "delay_mean", "delay_max"},
               {}};
  for (const auto& [names, row] : late) {
    const std::vector<std::string> all = figures(row->delays);
    answer.rows.push_back({names->first, names->second, all[0], text(row->late),
                           percent(static_cast<double>(row->late), static_cast<double>(row->delays.size())), all[1],
                           all[2], all[5]});
  }
  return answer;
}

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
