// SPDX-License-Identifier: Apache-2.0
#include "trace/analysis.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "base/number.hpp"
#include "trace/critical_path.hpp"
#include "trace/launch.hpp"
#include "trace/sums.hpp"

namespace zs::trace {
namespace {

/// The work of a rank on its streams, which `wanted` takes; a synchronisation is none.
template <typename Wanted>
std::vector<Span> spans_of(const Trace& trace, const Wanted& wanted) {
  std::vector<Span> spans;
  for (const Event& event : trace.events) {
    if (on_stream(event) && wanted(event)) spans.push_back({event.ts, event.end()});
  }
  return merged(std::move(spans));
}

std::vector<Kind> kinds(const Trace& trace) {
  std::vector<Kind> kinds;
  for (const std::string& name : trace.names) kinds.push_back(kind_of(name));
  return kinds;
}

Sheet temporal(const std::vector<Trace>& traces, const Settings&) {
  Sheet answer{{"rank", "kernel_time", "idle", "idle_percent", "computing", "computing_percent", "non_computing",
                "non_computing_percent"},
               {}};
  for (const Trace& trace : traces) {
    const std::vector<Kind> kind = kinds(trace);
    const auto busy_spans = spans_of(trace, [](const Event&) { return true; });
    if (busy_spans.empty()) continue;
    const double whole = busy_spans.back().end - busy_spans.front().begin, busy = length(busy_spans);
    const double computing = length(spans_of(trace, [&](const Event& e) { return kind[e.name] == Kind::computation; }));
    const double idle = whole - busy, other = whole - computing - idle;
    answer.rows.push_back({rank_of(trace), text(whole), text(idle), percent(idle, whole), text(computing),
                           percent(computing, whole), text(other), percent(other, whole)});
  }
  return answer;
}

Sheet idle(const std::vector<Trace>& traces, const Settings& settings) {
  Sheet answer{{"rank", "stream", "idle", "host_wait", "host_wait_percent", "kernel_wait", "kernel_wait_percent",
                "other_wait", "other_wait_percent"},
               {}};
  for (const Trace& trace : traces) {
    std::map<std::int32_t, std::vector<const Event*>> streams;
    for (const Event& event : trace.events) {
      if (on_stream(event)) streams[event.stream].push_back(&event);
    }
    for (auto& [stream, events] : streams) {
      std::ranges::stable_sort(events, [](const Event* a, const Event* b) { return a->ts < b->ts; });
      std::array<double, 3> waits{};
      for (std::size_t i = 1; i < events.size(); ++i) {
        const double before = events[i - 1]->end(), gap = events[i]->ts - before;
        const std::int32_t launch = events[i]->partner;
        const bool host = launch >= 0 && trace.events[static_cast<std::size_t>(launch)].ts > before;
        waits[host ? 0 : gap < settings.kernel_delay ? 1 : 2] += gap;
      }
      const double whole = waits[0] + waits[1] + waits[2];
      answer.rows.push_back({rank_of(trace), to_text(std::int64_t{stream}), text(whole)});
      for (const double wait : waits) {
        answer.rows.back().push_back(text(wait));
        answer.rows.back().push_back(percent(wait, whole));
      }
    }
  }
  return answer;
}

/// How long each set of kinds ran at once, over all ranks.
Sheet kernel_kinds(const std::vector<Trace>& traces, const Settings&) {
  std::array<double, 8> times{};
  for (const Trace& trace : traces) {
    const std::vector<Kind> kind = kinds(trace);
    std::vector<std::pair<double, int>> edges;  // +1 + kind begins, -1 - kind ends
    for (int k = 0; k < 3; ++k) {
      for (const Span& span : spans_of(trace, [&](const Event& e) { return static_cast<int>(kind[e.name]) == k; })) {
        if (span.begin >= span.end) continue;  // its end would be taken before its beginning
        edges.emplace_back(span.begin, k + 1);
        edges.emplace_back(span.end, -k - 1);
      }
    }
    std::ranges::sort(edges);
    unsigned running = 0;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      if (i > 0) times[running] += edges[i].first - edges[i - 1].first;
      const auto bit = 1U << (std::abs(edges[i].second) - 1);
      running = edges[i].second > 0 ? running | bit : running & ~bit;
    }
  }
  Sheet answer{{"kind", "time", "percent"}, {}};
  const double whole = std::accumulate(times.begin() + 1, times.end(), 0.0);
  for (unsigned set = 1; set < 8; ++set) {
    std::string label;
    for (unsigned k = 0; k < 3; ++k) {
      if (set >> k & 1U) label += (label.empty() ? "" : " overlapping ") + std::string(name(static_cast<Kind>(k)));
    }
    if (times[set] > 0) answer.rows.push_back({label, text(times[set]), percent(times[set], whole, 10)});
  }
  std::ranges::stable_sort(answer.rows,
                           [](const auto& a, const auto& b) { return *parse_real(a[1]) > *parse_real(b[1]); });
  return answer;
}

Sheet kernels(const std::vector<Trace>& traces, const Settings& settings) {
  std::map<std::string, std::vector<double>> times;
  for (const Trace& trace : traces) {
    for (const Event& event : trace.events) {
      if (on_stream(event)) times[trace.name(event)].push_back(event.dur);
    }
  }
  return by_name("kernel", std::move(times), settings);
}

/// The time of operators on processors, without the operators that they call.
Sheet operators(const std::vector<Trace>& traces, const Settings& settings) {
  std::map<std::string, std::vector<double>> times;
  for (const Trace& trace : traces) {
    std::vector<double> inner(trace.events.size());  // the time of each one's callees
    for (const Event& event : trace.events) {
      if (event.category == Category::cpu_op && event.caller >= 0)
        inner[static_cast<std::size_t>(event.caller)] += event.dur;
    }
    for (std::size_t i = 0; i < inner.size(); ++i) {
      const Event& event = trace.events[i];
      if (event.category == Category::cpu_op) times[trace.name(event)].push_back(event.dur - inner[i]);
    }
  }
  return by_name("operator", std::move(times), settings);
}

/// Annotations by record_function and similar functions on the host; steps are counted elsewhere.
Sheet annotations(const std::vector<Trace>& traces, const Settings& settings) {
  std::map<std::string, std::vector<double>> times;
  for (const Trace& trace : traces) {
    for (const Event& event : trace.events) {
      const std::string& name = trace.name(event);
      if (event.category == Category::annotation && !name.starts_with("ProfilerStep#"))
        times[name].push_back(event.dur);
    }
  }
  return by_name("annotation", std::move(times), settings);
}

Sheet overlap(const std::vector<Trace>& traces, const Settings&) {
  Sheet answer{{"rank", "communication", "overlapped", "overlap_percent"}, {}};
  for (const Trace& trace : traces) {
    const std::vector<Kind> kind = kinds(trace);
    const auto computing = spans_of(trace, [&](const Event& e) { return kind[e.name] == Kind::computation; });
    const auto communicating = spans_of(trace, [&](const Event& e) { return kind[e.name] == Kind::communication; });
    double both = 0;
    for (std::size_t i = 0, k = 0; i < computing.size() && k < communicating.size();) {
      both += std::max(
          0.0, std::min(computing[i].end, communicating[k].end) - std::max(computing[i].begin, communicating[k].begin));
      computing[i].end < communicating[k].end ? ++i : ++k;
    }
    const double whole = length(communicating);
    if (whole > 0) answer.rows.push_back({rank_of(trace), text(whole), text(both), percent(both, whole)});
  }
  return answer;
}

Sheet memory(const std::vector<Trace>& traces, const Settings&) {
  Sheet answer{{"rank", "device", "points", "peak_allocated", "peak_at", "peak_reserved"}, {}};
  for (const Trace& trace : traces) {
    std::map<std::int64_t, std::vector<const Memory*>> devices;
    for (const Memory& memory : trace.memory) devices[memory.device].push_back(&memory);
    for (const auto& [device, points] : devices) {
      const Memory& peak = **std::ranges::max_element(
          points, [](const Memory* a, const Memory* b) { return a->allocated < b->allocated; });
      std::int64_t reserved = 0;
      for (const Memory* const point : points) reserved = std::max(reserved, point->reserved);
      answer.rows.push_back({rank_of(trace), to_text(device), text(points.size()), to_text(peak.allocated),
                             text(peak.ts), to_text(reserved)});
    }
  }
  return answer;
}

/// An analysis that needs nothing but the traces.
template <Sheet (*analysis)(const std::vector<Trace>&, const Settings&)>
Sheet of(const Question& question, std::size_t most) {
  return analysis(question.traces(), {question.kernel_delay(), most});
}

}  // namespace

const std::vector<std::vector<Stretch>>& Question::paths() const {
  if (paths_.size() == traces_->size()) return paths_;
  for (const Trace& trace : *traces_) paths_.push_back(critical_path(trace, kernel_delay_));
  return paths_;
}

const std::vector<Analysis>& analyses() {
  static const std::vector<Analysis> kAll = {
      {"temporal", "where the time of each rank's GPU went", of<temporal>},
      {"idle", "why each stream waited: for the host, for the next kernel, for something else", of<idle>},
      {"kinds", "the kinds of work that ran at once", of<kernel_kinds>},
      {"kernels", "the kernels with the most time", of<kernels>},
      {"overlap", "how much of the communication computation hides", of<overlap>},
      {"queue", "how many launches waited on each stream", of<queue>},
      {"launch", "how long kernels waited after their launch", of<launch>},
      {"delays", "the operators whose kernels often begin more than 100 us after their launch", of<delays>},
      {"critical", "the critical path of each rank: the work that its end waited for", critical},
      {"critical_kernels", "the kernels with the most time on that path", critical_kernels},
      {"stragglers", "which rank the others wait for, by collective", of<stragglers>},
      {"annotations", "the marks of the program: the parts of a step", of<annotations>},
      {"operators", "the operators with the most time on processors, without what they call", of<operators>},
      {"memory", "the largest memory of each device", of<memory>},
  };
  return kAll;
}

Sheet difference(const std::vector<Trace>& control, const std::vector<Trace>& test, const Settings& settings) {
  struct Count {
    std::array<std::int64_t, 2> counts{};
    std::array<double, 2> times{};
  };
  std::map<std::pair<std::string, std::string>, Count> operations;
  for (const std::size_t side : {0U, 1U}) {
    for (const Trace& trace : side == 0 ? control : test) {
      for (const Event& event : trace.events) {
        const bool gpu = event.stream != -1;
        if (!gpu && event.category != Category::cpu_op) continue;
        Count& count = operations[{trace.name(event), gpu ? "gpu" : "cpu"}];
        ++count.counts[side];
        count.times[side] += event.dur;
      }
    }
  }
  Sheet answer{{"operation", "on", "sign", "count_control", "count_test", "count_change", "time_control", "time_test",
                "time_change"},
               {}};
  for (const auto& [key, count] : operations) {
    const std::int64_t more = count.counts[1] - count.counts[0];
    answer.rows.push_back({key.first, key.second,
                           more > 0   ? "+"
                           : more < 0 ? "-"
                                      : "=",
                           to_text(count.counts[0]), to_text(count.counts[1]), to_text(more), text(count.times[0]),
                           text(count.times[1]), text(count.times[1] - count.times[0])});
  }
  std::ranges::stable_sort(answer.rows, [](const auto& a, const auto& b) {
    return std::fabs(*parse_real(a[8])) > std::fabs(*parse_real(b[8]));
  });
  if (settings.most > 0 && answer.rows.size() > settings.most) answer.rows.resize(settings.most);
  return answer;
}

}  // namespace zs::trace
