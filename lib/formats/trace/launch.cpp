// SPDX-License-Identifier: Apache-2.0
#include "trace/launch.hpp"

#include <algorithm>
#include <cmath>
#include <map>

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

}  // namespace zs::trace
