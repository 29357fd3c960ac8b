// SPDX-License-Identifier: Apache-2.0
#include "trace/critical_path.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "trace/analysis.hpp"
#include "trace/sums.hpp"

namespace zs::trace {
namespace {

using Bound = Stretch::Bound;

constexpr std::array kBounds = {"computation", "communication", "memory", "other kernels", "launch", "queue", "host"};

/// Calls in which the host waits for a GPU.
bool synchronises(std::string_view name) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "cudaMemcpy",
      "hipDeviceSynchronize",  "hipStreamSynchronize",  "hipEventSynchronize",  "cuStreamSynchronize"};
  return std::ranges::find(kNames, name) != kNames.end();
}

Bound bound_of(std::string_view name) {
  switch (kind_of(name)) {
    case Kind::computation:
      return Bound::computation;
    case Kind::communication:
      return Bound::communication;
    case Kind::memory:
      return Bound::memory;
    case Kind::other:
      break;
  }
  return Bound::other;
}

/// Walks a trace back in time.
class Walk {
 public:
  Walk(const Trace& trace, double kernel_delay) : trace_(trace), kernel_delay_(kernel_delay) {
    const auto numbered = static_cast<std::int32_t>(trace.events.size());
    for (std::int32_t i = 0; i < numbered; ++i) {
      const Event& event = at(i);
      if (on_stream(event)) by_end_.push_back(i), streams_[event.stream].push_back(i);
      if (event.category == Category::runtime && synchronises(trace.name(event))) waits_.push_back(i);
    }
    const auto earlier = [&](std::int32_t a, std::int32_t b) { return at(a).end() < at(b).end(); };
    std::ranges::stable_sort(by_end_, earlier);
    for (auto& [stream, events] : streams_) std::ranges::stable_sort(events, earlier);
    std::ranges::stable_sort(waits_, earlier);
  }

  std::vector<Stretch> run() {
    if (by_end_.empty()) return {};
    double start = HUGE_VAL;
    for (const Event& event : trace_.events) start = std::min(start, event.ts);
    std::int32_t gpu = by_end_.back();
    now_ = at(gpu).end();
    // With wrong times in a trace the walk might not end.
    for (std::size_t most = 2 * trace_.events.size(); gpu >= 0 && now_ > start && most > 0; --most) {
      const std::int32_t before = on_gpu(gpu);
      gpu = before >= 0 ? before : on_host(start);
    }
    return std::move(path_);
  }

 private:
  const Event& at(std::int32_t i) const { return trace_.events[static_cast<std::size_t>(i)]; }

  void back(Bound bound, double to, std::int32_t event) {
    to = std::min(to, now_);
    if (to < now_) path_.push_back({bound, to, now_, event});
    now_ = to;
  }

  /// The last of `events` (by their ends) that ended at or before `time`; -1: none.
  std::int32_t last_by(const std::vector<std::int32_t>& events, double time) const {
    const auto after = std::upper_bound(events.begin(), events.end(), time,
                                        [&](double t, std::int32_t event) { return t < at(event).end(); });
    return after == events.begin() ? -1 : *(after - 1);
  }

  /// Steps back over an event that ran on a GPU to the event that it waited for: an event of a GPU, or -1 for the host.
  std::int32_t on_gpu(std::int32_t event) {
    const Event& kernel = at(event);
    back(bound_of(trace_.name(kernel)), kernel.ts, event);
    const std::int32_t before = last_by(streams_.at(kernel.stream), kernel.ts);
    const double free = before < 0 || before == event ? -HUGE_VAL : at(before).end();
    const double launched = kernel.partner < 0 ? -HUGE_VAL : std::min(at(kernel.partner).end(), now_);
    const double ready = std::max(free, launched);
    if (now_ - ready > kernel_delay_) {  // it may have waited for another stream
      const std::int32_t other = last_by(by_end_, now_);
      if (other >= 0 && other != event && at(other).end() > ready && at(other).stream != kernel.stream) {
        back(Bound::queue, at(other).end(), event);
        return other;
      }
    }
    if (kernel.partner >= 0 && at(kernel.partner).ts > free) {
      back(Bound::launch, launched, event);
      return -1;
    }
    if (free == -HUGE_VAL) return -1;
    back(Bound::queue, free, event);
    return before;
  }

  /// Back over the host's time to the newest call in which it waited for a GPU: what it waited for; -1 at the start.
  std::int32_t on_host(double start) {
    auto next = std::upper_bound(waits_.begin(), waits_.end(), now_,
                                 [&](double t, std::int32_t event) { return t < at(event).end(); });
    while (next != waits_.begin()) {
      const Event& call = at(*--next);
      const std::int32_t gpu = last_by(by_end_, call.end());
      if (gpu < 0 || at(gpu).end() <= call.ts) continue;  // nothing to wait for
      back(Bound::host, at(gpu).end(), -1);
      return gpu;
    }
    back(Bound::host, start, -1);
    return -1;
  }

  const Trace& trace_;
  double kernel_delay_, now_ = 0;
  std::vector<std::int32_t> by_end_, waits_;  // events of all streams; calls that synchronise
  std::map<std::int32_t, std::vector<std::int32_t>> streams_;
  std::vector<Stretch> path_;
};

}  // namespace

std::vector<Stretch> critical_path(const Trace& trace, double kernel_delay) { return Walk(trace, kernel_delay).run(); }

Sheet critical(const Question& question, std::size_t) {
  Sheet answer{{"rank", "bound_by", "time", "percent"}, {}};
  for (std::size_t i = 0; i < question.traces().size(); ++i) {
    const Trace& trace = question.traces()[i];
    std::array<double, kBounds.size()> times{};
    double whole = 0;
    for (const Stretch& stretch : question.paths()[i]) {
      times[static_cast<std::size_t>(stretch.bound)] += stretch.end - stretch.begin;
      whole += stretch.end - stretch.begin;
    }
    for (std::size_t k = 0; k < times.size(); ++k) {
      if (times[k] > 0) answer.rows.push_back({rank_of(trace), kBounds[k], text(times[k]), percent(times[k], whole)});
    }
  }
  return answer;
}

Sheet critical_kernels(const Question& question, std::size_t most) {
  std::map<std::string, std::vector<double>> times;
  for (std::size_t i = 0; i < question.traces().size(); ++i) {
    const Trace& trace = question.traces()[i];
    for (const Stretch& stretch : question.paths()[i]) {
      if (stretch.event >= 0 && stretch.bound != Bound::launch && stretch.bound != Bound::queue)
        times[trace.names[trace.events[static_cast<std::size_t>(stretch.event)].name]].push_back(stretch.end -
                                                                                                 stretch.begin);
    }
  }
  return by_name("kernel", std::move(times), {question.kernel_delay(), most});
}

}  // namespace zs::trace
