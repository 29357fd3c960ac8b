// SPDX-License-Identifier: Apache-2.0
#include "trace/trace.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/number.hpp"

namespace zs::trace {
namespace {

/// "trace-rank-3.json" -> 3; -1 if the name has no rank.
std::int64_t rank_in(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  std::size_t at = name.find("rank");
  if (at == std::string::npos) return -1;
  at = name.find_first_not_of("-_", at + 4);
  const std::size_t end = at == std::string::npos ? at : name.find_first_not_of("0123456789", at);
  return at == std::string::npos ? -1 : parse_int(name.substr(at, end - at)).value_or(-1);
}

std::string events(std::size_t count, const char* what) {
  return to_text(static_cast<std::int64_t>(count)) + " " + what + (count == 1 ? "" : "s");
}

/// Reports contradictory times.
void check_clocks(const Trace& trace, const FaultSink& faults) {
  constexpr double kRounded = 1;  // us: what cutting off fractions may do
  std::size_t early = 0, across = 0;
  double most = 0;
  for (const Event& event : trace.events) {
    if (event.category == Category::cpu_op && event.caller >= 0)
      across += event.end() > trace.events[static_cast<std::size_t>(event.caller)].end() + kRounded;
    if (!event.gpu || event.partner < 0) continue;
    const double before = trace.events[static_cast<std::size_t>(event.partner)].ts - event.ts;
    if (before <= kRounded) continue;
    ++early;
    most = std::max(most, before);
  }
  if (early > 0) {
    faults({trace.path, 0,
            events(early, "kernel") + (early == 1 ? " begins" : " begin") + " before the launch, by up to " +
                to_text(most) + " us: the clocks of host and GPU disagree, and waits are as wrong"});
  }
  if (across > 0) {
    faults({trace.path, 0,
            events(across, "operator") + (across == 1 ? " ends" : " end") +
                " after the operator around it: the host's clock went back, or events are missing"});
  }
}

}  // namespace

std::vector<Trace> read_all(const std::vector<std::string>& files, const Reading& how, const FaultSink& faults) {
  std::vector<Trace> traces;
  for (const std::string& file : files) {
    Trace one = read(file, faults, how.whole_microseconds);
    if (!one.rank_known) one.rank = rank_in(file) >= 0 ? rank_in(file) : static_cast<std::int64_t>(traces.size());
    prepare(one, how.with_last_step);
    check_clocks(one, faults);
    traces.push_back(std::move(one));
  }
  std::ranges::stable_sort(traces, [](const Trace& a, const Trace& b) { return a.rank < b.rank; });
  std::set<std::int64_t> ranks;
  for (const Trace& one : traces) {
    if (!ranks.insert(one.rank).second) faults({one.path, 0, "is a second trace of rank " + to_text(one.rank)});
  }
  return traces;
}

}  // namespace zs::trace
