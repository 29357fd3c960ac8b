// SPDX-License-Identifier: Apache-2.0
#include "plan/schedule.hpp"

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "plan/pass.hpp"

namespace zs::plan {
namespace {

void add(std::vector<std::string>& passes, const std::string& name) {
  if (name == "none") return;
  if (name != "ALL") return passes.push_back(name);
  for (const std::string& usual : usual_passes()) passes.push_back(usual);
}

}  // namespace

Schedule from_the_start(std::vector<std::string> passes) { return {{0, std::move(passes)}}; }

Schedule schedule_from(const std::vector<std::string>& words) {
  Schedule schedule;
  std::vector<std::string> plain;
  for (const std::string& word : words) {
    const std::size_t colon = word.find(':');
    if (colon == std::string::npos) {
      add(plain, word);
      continue;
    }
    const auto behind = parse_int(word.substr(0, colon));
    if (!behind || *behind < 0) throw Error("'" + word + "' begins with no number of steps: 5:prefetch+overlap_reduce");
    if (!schedule.empty() && *behind <= schedule.back().behind)
      throw Error("'" + word + "' must come behind more steps than '" + zs::to_text(schedule.back().behind) +
                  ":' in front of it");
    schedule.push_back({*behind, {}});
    for (const std::string& name : split(word.substr(colon + 1), "+")) {
      if (name.empty()) throw Error("'" + word + "' has no pass where one should be: 5:prefetch, or 5:none");
      add(schedule.back().passes, name);
    }
  }
  if (!plain.empty() && !schedule.empty())
    throw Error("'" + plain.front() + "' has no step, and other passes have one: name all as STEP:PASS+PASS");
  if (schedule.empty()) return from_the_start(std::move(plain));
  if (schedule.front().behind > 0) schedule.insert(schedule.begin(), Scheduled{});
  return schedule;
}

std::string to_text(const Schedule& schedule) {
  if (schedule.empty()) return "";
  if (schedule.size() == 1) return joined(schedule.front().passes, ",");
  std::vector<std::string> entries;
  for (const Scheduled& entry : schedule)
    entries.push_back(zs::to_text(entry.behind) + ":" + (entry.passes.empty() ? "none" : joined(entry.passes, "+")));
  return joined(entries, ",");
}

std::size_t in_force(const Schedule& schedule, std::int64_t done) {
  std::size_t at = 0;
  while (at + 1 < schedule.size() && schedule[at + 1].behind <= done) ++at;
  return at;
}

}  // namespace zs::plan
