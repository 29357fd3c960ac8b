// SPDX-License-Identifier: Apache-2.0
#include "trace/straggler.hpp"

#include <algorithm>
#include <map>

#include "base/number.hpp"
#include "trace/sums.hpp"

namespace zs::trace {
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
  std::map<std::string, std::vector<double>> all;
  for (auto& [name, list] : events) {
    std::stable_sort(list.begin(), list.end(), [](const Event* a, const Event* b) { return a->ts < b->ts; });
    for (const Event* const event : list) all[name].push_back(event->dur);
  }
  return all;
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
  const bool on_gpu = std::any_of(traces.begin(), traces.end(), [](const Trace& trace) {
    return std::any_of(trace.events.begin(), trace.events.end(), [&](const Event& event) {
      return event.category == Category::kernel && is_collective(trace.name(event));
    });
  });
  std::vector<std::map<std::string, std::vector<double>>> ranks;
  for (const Trace& trace : traces) ranks.push_back(calls(trace, on_gpu));
  std::map<std::string, Waits> all;
  for (const auto& [name, durations] : ranks.front()) {
    std::size_t shared = durations.size();
    for (const auto& rank : ranks) {
      const auto found = rank.find(name);
      shared = std::min(shared, found == rank.end() ? 0 : found->second.size());
    }
    if (shared == 0) continue;
    Waits& waits = all[label(name)];
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
  for (const auto& [name, waits] : all) {
    const auto worst =
        static_cast<std::size_t>(std::max_element(waits.caused.begin(), waits.caused.end()) - waits.caused.begin());
    double whole = 0;
    for (const double wait : waits.caused) whole += wait;
    rows.emplace_back(whole, std::vector<std::string>{
                                 name, text(waits.count), rank_of(traces[worst]), text(waits.last[worst]),
                                 percent(static_cast<double>(waits.last[worst]), static_cast<double>(waits.count)),
                                 text(waits.caused[worst]), text(whole)});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [whole, row] : rows) {
    if (answer.rows.size() < settings.most) answer.rows.push_back(std::move(row));
  }
  return answer;
}

}  // namespace zs::trace
