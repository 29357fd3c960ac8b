// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "base/number.hpp"
#include "trace/trace.hpp"

namespace zs::trace {

bool on_device(Category category) {
  return category == Category::kernel || category == Category::memcpy || category == Category::memset ||
         category == Category::sync;
}

namespace {

/// Finds the caller of each operator and launch: of those that began before it and had not ended, the last to begin.
void find_callers(std::vector<Event>& events) {
  std::unordered_map<std::int32_t, std::vector<std::int32_t>> threads;
  for (std::size_t i = 0; i < events.size(); ++i) {
    events[i].caller = -1;
    const bool launch = !events[i].gpu && events[i].partner >= 0;
    if (events[i].category == Category::cpu_op || launch) threads[events[i].thread].push_back(static_cast<int>(i));
  }
  const auto at = [&](std::int32_t i) -> Event& { return events[static_cast<std::size_t>(i)]; };
  for (auto& [thread, list] : threads) {
    std::ranges::stable_sort(list, [&](std::int32_t a, std::int32_t b) {
      return at(a).ts != at(b).ts ? at(a).ts < at(b).ts : at(a).dur > at(b).dur;
    });
    std::vector<std::int32_t> open;
    for (const std::int32_t i : list) {
      // Within a microsecond the next may begin before the last has ended: the profiler's clock is no finer.
      const auto over = [&](const Event& last) {
        return last.end() <= at(i).ts || (last.end() <= at(i).ts + 1 && last.end() + 1 < at(i).end());
      };
      while (!open.empty() && over(at(open.back()))) open.pop_back();
      if (!open.empty()) at(i).caller = open.back();
      if (at(i).category == Category::cpu_op) open.push_back(i);
    }
  }
}

}  // namespace

void prepare(Trace& trace, bool with_last_step) {
  std::vector<Event>& events = trace.events;
  double first = HUGE_VAL;
  for (Event& event : events) {
    const std::string& name = trace.name(event);
    event.gpu = on_device(event.category);
    if (!event.gpu && event.category == Category::annotation && name.starts_with("ProfilerStep#")) {
      if (const auto number = parse_int(name.substr(13))) trace.steps.emplace(*number, event.ts);
    }
    first = std::min(first, event.ts);
  }
  const auto link = [&] {
    std::unordered_map<std::int64_t, std::pair<std::int32_t, std::int32_t>> pairs;
    for (std::size_t i = 0; i < events.size(); ++i) {
      events[i].partner = -1;
      if (events[i].correlation <= 0) continue;
      auto& [host, device] = pairs.try_emplace(events[i].correlation, -1, -1).first->second;
      std::int32_t& side = events[i].gpu ? device : host;
      if (side < 0) side = static_cast<std::int32_t>(i);
    }
    for (const auto& [correlation, pair] : pairs) {
      if (pair.first < 0 || pair.second < 0) continue;
      events[static_cast<std::size_t>(pair.first)].partner = pair.second;
      events[static_cast<std::size_t>(pair.second)].partner = pair.first;
    }
  };
  if (trace.steps.size() >= 2) {
    const double start = trace.steps.rbegin()->second;
    double last = start;
    if (with_last_step) {
      for (const Event& event : events) {
        if (!event.gpu && event.ts == start && trace.name(event).starts_with("ProfilerStep#"))
          last = std::max(last, event.end());
      }
    }
    std::unordered_map<std::int64_t, bool> launched;
    const auto kept = [&](const Event& event) { return with_last_step ? event.ts <= last : event.ts < start; };
    for (const Event& event : events) {
      if (!event.gpu && event.correlation >= 0 && kept(event)) launched[event.correlation] = true;
    }
    std::erase_if(events,
                  [&](const Event& event) { return event.gpu ? !launched.contains(event.correlation) : !kept(event); });
  }
  link();
  find_callers(events);
  for (Event& event : events) event.ts -= first;
  for (Memory& memory : trace.memory) memory.ts -= first;
}

Kind kind_of(std::string_view name) {
  const auto begins = [&](std::initializer_list<std::string_view> heads) {
    return std::ranges::any_of(heads, [&](std::string_view head) { return name.starts_with(head); });
  };
  const auto holds = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (begins({"nccl", "hip", "hccl"}) || holds("ncclKernel")) return Kind::communication;
  if (begins({"Memcpy", "Memset", "dma"})) return Kind::memory;
  const bool other = holds("Memcpy") || holds("Memset") || holds("dma") || holds("Sync") ||
                     begins({"Stream Wait Event", "runFunction", "job_exe", "packet", "pe_exe", "cpum_exe_subgraph",
                             "collective_subgraph_execution"}) ||
                     (name.starts_with("cuda") && holds("LaunchKernel"));
  return other ? Kind::other : Kind::computation;
}

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::computation:
      return "computation";
    case Kind::communication:
      return "communication";
    case Kind::memory:
      return "memory";
    case Kind::other:
      break;
  }
  return "other";
}

}  // namespace zs::trace
