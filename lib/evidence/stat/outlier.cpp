// SPDX-License-Identifier: Apache-2.0
#include "stat/outlier.hpp"

#include <algorithm>
#include <array>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "base/number.hpp"
#include "stat/alike.hpp"
#include "stat/row.hpp"
#include "stat/sample.hpp"
#include "stat/work.hpp"

namespace zs::stat {
namespace {

using metric::is_absent;

double time_of(const Member& member) {
  if (!member.timing.seconds.empty()) return mean(member.timing.seconds);
  const auto rate = parse_real(member.run->attribute("summary.train_steps_per_second"));
  return rate && *rate > 0 ? 1 / *rate : kNan;
}

double loss_of(const Member& member) {
  Sample losses;
  for (const Point& point : member.series.points) {
    if (!is_absent(point.loss)) losses.push_back(point.loss);
  }
  if (losses.empty()) return kNan;
  const std::size_t last = std::max<std::size_t>(1, losses.size() / 10);
  return mean({losses.end() - static_cast<std::ptrdiff_t>(last), losses.end()});
}

struct Throughput {
  double value;
  const char* unit;
};

/// As counted over the times, else as the run logs it.
Throughput throughput(const Member& member) {
  if (member.timing.token_seconds > 0)
    return {member.timing.tokens / member.timing.token_seconds, member.series.images ? "images/s" : "tokens/s"};
  for (const bool tokens : {true, false}) {
    const double logged = logged_rate(*member.run, tokens);
    if (std::isfinite(logged)) return {logged, tokens ? "tokens/s" : "samples/s"};
  }
  return {kNan, ""};
}

double throughput_of(const Member& member) { return throughput(member).value; }
std::string throughput_unit(const Member& member) { return throughput(member).unit; }

double memory_of(const Member& member) { return is_absent(member.series.peak_mem) ? kNan : member.series.peak_mem; }

struct Quantity {
  const char *name, *more, *less;  // in a sentence
  double (*value)(const Member&);
  std::string (*unit)(const Member&);
  double least;  // relative change
  bool more_is_worse;
};
constexpr std::array kQuantities = {
    Quantity{"time", "slower", "faster", time_of, [](const Member&) -> std::string { return "s"; }, 0.05, true},
    Quantity{"loss", "higher loss", "lower loss", loss_of, [](const Member& member) { return member.series.loss_unit; },
             0.01, true},
    Quantity{"throughput", "higher throughput", "lower throughput", throughput_of, throughput_unit, 0.05, false},
    Quantity{"memory", "more memory", "less memory", memory_of, [](const Member&) -> std::string { return "bytes"; },
             0.01, true},
};

/// A run outside of the fence of its group.
struct Found {
  const Quantity* quantity;
  const Condition* condition;
  const Member* member;
  double value;
  Fence fence;
  std::size_t alike, group;

  double change() const { return value / fence.median - 1; }
  bool worse() const { return (value > fence.median) == quantity->more_is_worse; }
};

/// The throughput of a run whose time is named, and that is as much lower as the time is longer.
bool follows_from_time(const Found& one, const std::vector<Found>& found) {
  constexpr double kAsMuch = 0.05;
  return std::ranges::any_of(found, [&](const Found& other) {
    return other.member == one.member && std::string(other.quantity->name) == "time" &&
           std::fabs((1 + one.change()) * (1 + other.change()) - 1) < kAsMuch;
  });
}

std::string percent_text(double share) { return to_rounded_text(100 * share, share < 0.1 ? 1 : 2); }

}  // namespace

Fence fence(const Sample& values, double least) {
  if (values.size() < kFewestAlike) return {kNan, kNan, kNan};
  constexpr double kEfficiency = 0.37;
  const auto size = static_cast<double>(values.size());
  const boost::math::students_t student(kEfficiency * (size - 1));
  const double q = boost::math::quantile(boost::math::complement(student, 1 / kGroupsForOneFalse / (2 * size)));
  const double centre = median(values);
  const double reach = std::max(q * mad(values), least * std::fabs(centre));
  return {centre, centre - reach, centre + reach};
}

metric::Table outliers(const std::vector<Condition>& conditions) {
  std::vector<const metric::Run*> runs;
  std::vector<std::pair<const Condition*, const Member*>> members;
  for (const Condition& condition : conditions) {
    for (const Member& member : condition.members) {
      if (!attribute::believable(member.judgement.status)) continue;
      runs.push_back(member.run), members.emplace_back(&condition, &member);
    }
  }
  std::vector<Found> found;
  const std::vector<Alike> groups = alike(runs);
  for (const Quantity& quantity : kQuantities) {
    for (std::size_t group = 0; group < groups.size(); ++group) {
      Sample values;
      for (const std::size_t run : groups[group].runs) {
        const double value = quantity.value(*members[run].second);
        if (std::isfinite(value)) values.push_back(value);
      }
      const Fence usual = fence(values, quantity.least);
      const auto inside =
          static_cast<std::size_t>(std::ranges::count_if(values, [&](double value) { return !usual.outside(value); }));
      if (!std::isfinite(usual.median) || usual.median == 0) continue;
      for (const std::size_t run : groups[group].runs) {
        const Found one{
            &quantity, members[run].first, members[run].second, quantity.value(*members[run].second), usual, inside,
            group};
        const bool again = std::string(quantity.name) == "throughput" && follows_from_time(one, found);
        if (usual.outside(one.value) && !again) found.push_back(one);
      }
    }
  }
  std::ranges::stable_sort(found, [](const Found& a, const Found& b) { return a.worse() && !b.worse(); });
  metric::Table table;
  RowWriter row(table);
  for (const Found& one : found) {
    row.text("quantity", one.quantity->name);
    row.text("condition", one.condition->name);
    row.text("run", one.member->run->name);
    row.text("unit", one.quantity->unit(*one.member));
    row.real("value", one.value);
    row.real("median", one.fence.median);
    row.real("low", one.fence.low);
    row.real("high", one.fence.high);
    row.real("change", one.change());
    row.count("alike", one.alike);
    row.count("group", one.group);
  }
  return table;
}

std::vector<std::string> outlier_sentences(const metric::Store& store) {
  const auto entry = store.tables.find("outliers");
  if (entry == store.tables.end()) return {};
  const metric::Table& table = entry->second;
  struct Together {
    const Quantity* quantity;
    bool more;
    std::string group, alike;
    std::vector<std::string> runs;
    double least = HUGE_VAL, most = 0;
  };
  std::vector<Together> together;
  const auto cell = [&](const char* name, std::size_t row) { return table.text(name, row); };
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto quantity = std::ranges::find(kQuantities, cell("quantity", row), &Quantity::name);
    const auto change = parse_real(cell("change", row));
    if (quantity == kQuantities.end() || !change) continue;
    auto place = std::ranges::find_if(together, [&](const Together& one) {
      return one.quantity == &*quantity && one.more == (*change > 0) && one.group == cell("group", row);
    });
    if (place == together.end())
      place = together.insert(place, {&*quantity, *change > 0, cell("group", row), cell("alike", row), {}});
    place->runs.push_back(cell("run", row));
    place->least = std::min(place->least, std::fabs(*change)), place->most = std::max(place->most, std::fabs(*change));
  }
  std::vector<std::string> sentences;
  for (const Together& one : together) {
    const std::string least = percent_text(one.least), most = percent_text(one.most);
    const std::string change = (least == most ? least : least + " to " + most) + " % ";
    const bool has = std::string(one.quantity->name) != "time", single = one.runs.size() == 1;
    sentences.push_back(ranges(one.runs) + (has ? (single ? " has " : " have ") : (single ? " is " : " are ")) +
                        change + (one.more ? one.quantity->more : one.quantity->less) + " than the " + one.alike +
                        " runs like " + (single ? "it" : "them"));
  }
  return sentences;
}

}  // namespace zs::stat
