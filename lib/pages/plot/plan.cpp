// SPDX-License-Identifier: Apache-2.0
#include "plot/plan.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.hpp"

namespace zs::plot {
namespace {

/// One way over the numbers of ranks.
struct Way {
  std::string name;
  std::map<int, const plan::Candidate*> best;  // by ranks: the fastest that fits, else the one of least memory
};

bool better(const plan::Candidate& one, const plan::Candidate& other) {
  if (one.why_not.empty() != other.why_not.empty()) return one.why_not.empty();
  return one.why_not.empty() ? one.rate > other.rate : one.predicted.memory < other.predicted.memory;
}

/// Stages first, in their order; as the candidates name them.
std::vector<Way> ways_of(const std::vector<plan::Candidate>& candidates) {
  std::map<std::string, Way> by_name;
  for (const plan::Candidate& one : candidates) {
    Way& way = by_name[plan::way(one.shape)];
    way.name = plan::way(one.shape);
    auto& best = way.best[one.shape.ranks];
    if (!best || better(one, *best)) best = &one;
  }
  std::vector<Way> ways;
  ways.reserve(by_name.size());
  for (auto& [name, way] : by_name) ways.push_back(std::move(way));
  return ways;
}

Panel over_ranks(const std::string& title, const std::string& y_label, const std::set<int>& ranks) {
  Panel panel;
  panel.title = title;
  panel.x_label = "ranks";
  panel.y_label = y_label;
  panel.log_x = true;
  panel.x_ticks.assign(ranks.begin(), ranks.end());
  return panel;
}

}  // namespace

Figure plan_figure(const std::vector<plan::Candidate>& candidates, double memory) {
  std::set<int> ranks;
  double fastest = 0, largest = memory, fastest_rank = 0;
  for (const plan::Candidate& one : candidates) {
    ranks.insert(one.shape.ranks);
    if (one.why_not.empty()) fastest = std::max(fastest, one.rate);
    if (one.why_not.empty()) fastest_rank = std::max(fastest_rank, one.rate / one.shape.ranks);
    largest = std::max(largest, one.predicted.memory);
  }
  if (ranks.size() < 2) throw UsageError("a figure is over numbers of nodes: give two or more, --nodes 1,2,4,8");
  if (fastest == 0)
    throw Error("no configuration fits into the memory, or can be predicted: --format table --all shows why");
  const Unit rate_unit = summary::rate_unit(fastest), bytes_unit = summary::bytes_unit(largest);
  const std::string& noun = candidates.front().noun;
  Panel rate = over_ranks("Throughput", noun + " (" + rate_unit.name + ")", ranks),
        share = over_ranks("Efficiency", noun + " of a rank, as a share of the fastest (%)", ranks),
        bytes = over_ranks("Memory of a rank", "memory at the peak (" + bytes_unit.name + ")", ranks);
  rate.log_y = bytes.log_y = share.from_zero = true;
  std::size_t hue = 0;
  for (const Way& way : ways_of(candidates)) {
    Series rates{way.name, Ink(hue++), {}, {}}, sizes = rates, shares = rates;
    for (const auto& [count, one] : way.best) {
      const double reached = one->why_not.empty() ? one->rate : kNone;
      for (Series* const series : {&rates, &shares, &sizes}) series->x.push_back(count);
      rates.y.push_back(reached / rate_unit.factor);
      shares.y.push_back(100 * reached / count / fastest_rank);
      sizes.y.push_back(one->predicted.memory / bytes_unit.factor);
    }
    const bool fits = std::ranges::any_of(rates.y, [](double value) { return std::isfinite(value); });
    if (!fits) rates.note = way.best.rbegin()->second->why_not;
    rate.series.push_back(rates);
    share.series.push_back(shares);
    bytes.series.push_back(sizes);
  }
  if (memory > 0) {
    const double limit = memory / bytes_unit.factor;
    bytes.series.push_back(
        {"limit: --memory", Ink(Ink::Role::note), bytes.x_ticks, std::vector<double>(bytes.x_ticks.size(), limit)});
  }
  rate.notes.emplace_back("each point: the number of accumulation steps that is fastest and fits");
  bytes.notes.emplace_back("with the accumulation steps of the point above, else those of least memory");
  figure::stripe_coinciding(rate.series, 0.004, /*log=*/true);
  figure::stripe_coinciding(share.series);
  figure::stripe_coinciding(bytes.series, 0.004, /*log=*/true);
  return {"Predicted scaling", {std::move(rate), std::move(share), std::move(bytes)}};
}

}  // namespace zs::plot
