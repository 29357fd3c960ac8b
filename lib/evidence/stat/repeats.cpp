// SPDX-License-Identifier: Apache-2.0
#include "stat/repeats.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "attribute/difference.hpp"
#include "base/number.hpp"
#include "compare/precision.hpp"
#include "metric/table.hpp"
#include "stat/sample.hpp"

namespace zs::stat {
namespace {

constexpr std::size_t kWindows = 10;
constexpr double kChance = 0.05;

using metric::is_absent;
using Place = RunLosses::value_type::first_type;

/// The places that all runs of both have.
std::vector<Place> common_places(const Repeats& one, const Repeats& other) {
  std::vector<Place> common;
  for (const auto& [place, loss] : one.runs.front()) common.push_back(place);
  for (const Repeats* const side : {&one, &other}) {
    for (const RunLosses& run : side->runs) {
      auto at = run.begin();
      std::erase_if(common, [&](const Place& place) {
        while (at != run.end() && at->first < place) ++at;
        return at == run.end() || at->first != place;
      });
    }
  }
  return common;
}

/// The losses of a run at these places, which it has.
Sample losses_at(const RunLosses& run, const std::vector<Place>& places) {
  Sample found;
  auto at = run.begin();
  for (const Place& place : places) {
    while (at->first < place) ++at;
    found.push_back(at->second);
  }
  return found;
}

/// One side: by run and place, and its means by window and run.
struct Side {
  std::vector<Sample> losses{}, windows{};

  double mean_at(std::size_t place) const {
    Sample values;
    for (const Sample& run : losses) values.push_back(run[place]);
    return mean(values);
  }
};

Side side(const Repeats& repeats, const std::vector<Place>& places, const std::vector<std::size_t>& ends) {
  Side made;
  for (const RunLosses& run : repeats.runs) made.losses.push_back(losses_at(run, places));
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    Sample means;
    for (const Sample& run : made.losses)
      means.push_back(
          mean({run.begin() + static_cast<std::ptrdiff_t>(begin), run.begin() + static_cast<std::ptrdiff_t>(end)}));
    made.windows.push_back(std::move(means));
    begin = end;
  }
  return made;
}

/// For each window the values whose moments count there: its own, with the largest variance of it and the later ones.
std::vector<Moments> held(const std::vector<Sample>& windows, const Sample& least_variance) {
  std::vector<Moments> made;
  for (const Sample& values : windows) made.push_back(moments(values));
  double most = 0;
  for (std::size_t i = made.size(); i-- > 0;) {
    if (made[i].variance > most) most = made[i].variance;
    made[i].variance = std::max(most, least_variance[i]);
  }
  return made;
}

/// The differences of runs with equal seeds, by window; nothing if the seeds are not the same, each once.
std::vector<Sample> of_seeds(const Repeats& one, const Repeats& other, const Side& a, const Side& b) {
  const std::set<std::string> seeds(one.seeds.begin(), one.seeds.end());
  if (seeds.size() != one.seeds.size() || seeds.size() < 2 || seeds.contains("") ||
      one.seeds.size() != other.seeds.size() || seeds != std::set<std::string>(other.seeds.begin(), other.seeds.end()))
    return {};
  std::vector<Sample> made;
  for (std::size_t window = 0; window < a.windows.size(); ++window) {
    Sample differences;
    for (std::size_t i = 0; i < one.seeds.size(); ++i) {
      const auto pair = std::ranges::find(other.seeds, one.seeds[i]) - other.seeds.begin();
      differences.push_back(b.windows[window][static_cast<std::size_t>(pair)] - a.windows[window][i]);
    }
    made.push_back(std::move(differences));
  }
  return made;
}

double widest(const std::vector<Sample>& windows, std::size_t from) {
  double most = 0;
  for (std::size_t i = from; i < windows.size(); ++i) most = std::max(most, greatest(windows[i]) - least(windows[i]));
  return most;
}

}  // namespace

Repeats::Repeats(const Condition& condition) {
  for (const Member& member : condition.members) {
    RunLosses losses;
    std::int64_t count = 0;
    for (const Point& point : member.series.points) {
      ++count;
      if (!is_absent(point.loss)) losses.push_back({place_of(point, count), point.loss});
    }
    std::ranges::stable_sort(losses, {}, &RunLosses::value_type::first);
    runs.push_back(std::move(losses));
    const attribute::Facts facts = attribute::named(member.run->attributes);
    const auto seed = facts.find("seed");
    seeds.push_back(seed == facts.end() ? "" : seed->second);
    if (const metric::Column* const column = member.run->records.find("loss")) {
      const compare::Precision precision = compare::precision_of(*member.run, *column);
      if (!precision.every_bit) rounding = std::max(rounding, precision.uncertainty());
    }
  }
}

std::optional<Leaves> leaves(const Repeats& one, const Repeats& other, std::size_t tests) {
  const std::vector<Place> places = common_places(one, other);
  if (places.empty()) return Leaves{metric::kAbsentInteger, kNan, kNan};  // nothing shows that it is chance
  std::vector<std::size_t> ends;
  const std::size_t count = std::min(kWindows, places.size());
  for (std::size_t i = 1; i <= count; ++i) ends.push_back(places.size() * i / count);
  const Side a = side(one, places, ends), b = side(other, places, ends);
  // A number is rounded by up to `rounding`, evenly: a variance of a third of its square, in a mean of n a n-th of
  // that.
  const auto of_print = [&](double rounding) {
    Sample made;
    for (std::size_t i = 0; i < count; ++i)
      made.push_back(rounding * rounding / 3 / static_cast<double>(ends[i] - (i > 0 ? ends[i - 1] : 0)));
    return made;
  };
  const std::vector<Sample> pairs = of_seeds(one, other, a, b);
  const std::vector<Moments> of_a = held(a.windows, of_print(one.rounding)),
                             of_b = held(b.windows, of_print(other.rounding)),
                             of_pairs = held(pairs, of_print(std::sqrt(one.rounding * one.rounding +
                                                                       other.rounding * other.rounding)));
  const double limit = kChance / static_cast<double>(count * std::max<std::size_t>(tests, 1) * (pairs.empty() ? 1 : 2));
  for (std::size_t i = 0; i < count; ++i) {
    const double difference = of_b[i].mean - of_a[i].mean;
    bool apart = !std::isfinite(difference) || welch(of_a[i], of_b[i]).p() < limit;
    double spread = std::max(widest(a.windows, i), widest(b.windows, i));
    if (!pairs.empty() && !apart) {
      const auto n = static_cast<double>(of_pairs[i].count);
      apart = Estimate{of_pairs[i].mean, std::sqrt(of_pairs[i].variance / n), n - 1}.p() < limit;
      spread = widest(pairs, i);
    }
    if (!apart) continue;
    std::size_t first = i > 0 ? ends[i - 1] : 0;
    while (first + 1 < ends[i] && a.mean_at(first) == b.mean_at(first)) ++first;
    return Leaves{places[first].second, std::abs(difference), spread};
  }
  return {};
}

}  // namespace zs::stat
