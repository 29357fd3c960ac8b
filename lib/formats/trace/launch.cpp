// SPDX-License-Identifier: Apache-2.0
#include "trace/launch.hpp"

#include <algorithm>
#include <array>
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
  return std::ranges::find(kNames, name) != kNames.end();
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
    const std::vector<std::string> columns = figures(delays);
    std::ranges::sort(delays);
    answer.rows.push_back({rank_of(trace), columns[0], columns[2], text(quantile(delays, 0.5)), columns[5], text(brief),
                           text(slow), text(late)});
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
  std::ranges::stable_sort(late, [](const auto& a, const auto& b) { return a.second->late > b.second->late; });
  if (late.size() > settings.most) late.resize(settings.most);
  Sheet answer{{"operator", "kernel", "launches", "late_starts", "late_percent", "delay", "delay_mean", "delay_max"},
               {}};
  for (const auto& [names, row] : late) {
    const std::vector<std::string> columns = figures(row->delays);
    answer.rows.push_back({names->first, names->second, columns[0], text(row->late),
                           percent(static_cast<double>(row->late), static_cast<double>(row->delays.size())), columns[1],
                           columns[2], columns[5]});
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
  std::map<std::int32_t, Queue> courses;
  for (auto& [stream, changes] : streams) {
    std::ranges::stable_sort(changes, [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    double now = 0;
    for (const auto& [time, change] : changes) {
      courses[stream].times.push_back(time);
      courses[stream].lengths.push_back(now += change);
    }
  }
  return courses;
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
      const std::vector<std::string> columns = figures(lengths);
      std::ranges::sort(lengths);
      answer.rows.push_back({rank_of(trace), to_text(std::int64_t{stream}), columns[0], columns[2], columns[3],
                             columns[4], text(quantile(lengths, 0.25)), text(quantile(lengths, 0.5)),
                             text(quantile(lengths, 0.75)), columns[5], text(full)});
    }
  }
  return answer;
}

namespace {

/// Whether an annotation is of a collective: "gloo:all_reduce", "zs::communication gather_wait h.0".
bool annotates_collective(std::string_view name) {
  return name.starts_with("zs::communication ") || name.starts_with("gloo:") || name.starts_with("nccl:") ||
         name.starts_with("mpi:");
}

bool is_collective(std::string_view name) { return name.find("nccl") != std::string_view::npos; }

/// The name under which calls are summed: without the unit of "zs::communication gather_wait h.0".
std::string label(const std::string& name) {
  if (!name.starts_with("zs::communication ")) return name;
  return name.substr(0, name.find(' ', std::string_view("zs::communication ").size()));
}

/// The durations of each collective of a rank, by name, in their order.
std::map<std::string, std::vector<double>> calls(const Trace& trace, bool on_gpu) {
  std::map<std::string, std::vector<const Event*>> events;
  for (const Event& event : trace.events) {
    const std::string& name = trace.name(event);
    if (on_gpu ? event.category == Category::kernel && is_collective(name)
               : event.category == Category::annotation && annotates_collective(name))
      events[name].push_back(&event);
  }
  std::map<std::string, std::vector<double>> durations;
  for (auto& [name, list] : events) {
    std::ranges::stable_sort(list, [](const Event* a, const Event* b) { return a->ts < b->ts; });
    for (const Event* const event : list) durations[name].push_back(event->dur);
  }
  return durations;
}

struct Waits {
  std::size_t count = 0;
  std::vector<std::size_t> last;  // how often each rank came last
  std::vector<double> caused;     // waiting time of the others for it
};

}  // namespace

Sheet stragglers(const std::vector<Trace>& traces, const Settings& settings) {
  Sheet answer{{"collective", "count", "rank", "came_last", "came_last_percent", "others_waited", "all_waits"}, {}};
  if (traces.size() < 2) return answer;
  const bool on_gpu = std::ranges::any_of(traces, [](const Trace& trace) {
    return std::ranges::any_of(trace.events, [&](const Event& event) {
      return event.category == Category::kernel && is_collective(trace.name(event));
    });
  });
  std::vector<std::map<std::string, std::vector<double>>> ranks;
  for (const Trace& trace : traces) ranks.push_back(calls(trace, on_gpu));
  std::map<std::string, Waits> waits_by_name;
  for (const auto& [name, durations] : ranks.front()) {
    std::size_t shared = durations.size();
    for (const auto& rank : ranks) {
      const auto found = rank.find(name);
      shared = std::min(shared, found == rank.end() ? 0 : found->second.size());
    }
    if (shared == 0) continue;
    Waits& waits = waits_by_name[label(name)];
    waits.last.resize(ranks.size());
    waits.caused.resize(ranks.size());
    waits.count += shared;
    for (std::size_t call = 0; call < shared; ++call) {
      std::size_t shortest = 0;
      double sum = 0;
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const double duration = ranks[rank].at(name)[call];
        sum += duration;
        if (duration < ranks[shortest].at(name)[call]) shortest = rank;
      }
      const double wait = sum - static_cast<double>(ranks.size()) * ranks[shortest].at(name)[call];
      if (wait <= 0) continue;  // together
      ++waits.last[shortest];
      waits.caused[shortest] += wait;
    }
  }
  std::vector<std::pair<double, std::vector<std::string>>> rows;
  for (const auto& [name, waits] : waits_by_name) {
    const auto worst = static_cast<std::size_t>(std::ranges::max_element(waits.caused) - waits.caused.begin());
    double whole = 0;
    for (const double wait : waits.caused) whole += wait;
    rows.emplace_back(whole, std::vector<std::string>{
                                 name, text(waits.count), rank_of(traces[worst]), text(waits.last[worst]),
                                 percent(static_cast<double>(waits.last[worst]), static_cast<double>(waits.count)),
                                 text(waits.caused[worst]), text(whole)});
  }
  std::ranges::stable_sort(rows, [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [whole, row] : rows) {
    if (answer.rows.size() < settings.most) answer.rows.push_back(std::move(row));
  }
  return answer;
}

}  // namespace zs::trace
