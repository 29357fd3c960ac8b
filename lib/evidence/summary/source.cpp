// SPDX-License-Identifier: Apache-2.0
#include "summary/source.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "stat/summary.hpp"
#include "summary/condition.hpp"

namespace zs::summary {
namespace {

/// Runs of zs-train have ids as names: uses their run_name if all are distinct.
void rename(metric::Store& store) {
  std::map<std::string, std::size_t> count;
  for (const metric::Run& run : store.runs) ++count[run.attribute("run_name")];
  for (metric::Run& run : store.runs) {
    const std::string name = run.attribute("run_name");
    if (!name.empty() && count[name] == 1 && run.name == run.attribute("run_id")) run.name = name;
  }
}

}  // namespace

metric::Store read(const std::vector<input::Named>& named, const input::Listener& listener,
                   const std::function<void(const std::string&)>& warn, stat::SummaryRule rule) {
  metric::Store store = input::read(named, listener);
  if (store.summary && named.size() == 1) {
    mark_timed(store);
    return store;
  }
  if (store.runs.empty()) throw Error(named.front().name, 0, "holds no run with a metric line");
  metric::Store records;
  records.runs = std::move(store.runs);
  rename(records);
  std::set<std::string> names;
  for (const metric::Run& run : records.runs) {
    if (!names.insert(run.name).second) throw Error("two runs '" + run.name + "': give only one of them");
  }
  for (const std::string& by : std::vector(rule.by)) {
    const auto has = [&](const metric::Run& run) { return !run.attribute(by).empty(); };
    if (!std::ranges::all_of(records.runs, has)) rule.by.clear();
  }
  stat::Summary made = stat::summarize(std::move(records), rule);
  std::ranges::for_each(made.warnings, warn);
  return std::move(made.store);
}

}  // namespace zs::summary
