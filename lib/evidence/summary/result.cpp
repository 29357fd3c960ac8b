// SPDX-License-Identifier: Apache-2.0
#include "summary/result.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "summary/unit.hpp"

namespace zs::summary {
namespace {

template <auto Member>
double read(const Condition& condition) {
  return condition.*Member ? static_cast<double>(*(condition.*Member)) : std::numeric_limits<double>::quiet_NaN();
}
std::string loss(double value) { return to_rounded_text(value, 5); }
std::string seconds(double value) { return time_unit(value).text(value); }
std::string bytes(double value) { return bytes_unit(value).text(value); }
std::string rate(double value) { return rate_unit(value).text(value); }

const std::vector<Result>& table() {
  static const std::vector<Result> all = {
      {"valid_loss", "validation loss", read<&Condition::valid_loss>, loss},
      {"final_loss", "final loss", read<&Condition::final_loss>, loss},
      {"best_loss", "best loss", read<&Condition::best_loss>, loss},
      {"mean_loss", "mean loss", read<&Condition::mean_loss>, loss},
      {"time_mean", "mean iteration time (s)", read<&Condition::time_mean>, seconds},
      {"peak_mem", "peak memory of a rank (bytes)", read<&Condition::peak_mem>, bytes},
      {"tokens_per_second", "tokens (1/s)", read<&Condition::tokens_per_second>, rate, true},
      {"images_per_second", "images (1/s)", read<&Condition::images_per_second>, rate, true},
  };
  return all;
}

/// Numbers by value, then words by letter.
bool before(const std::string& a, const std::string& b) {
  const auto x = parse_real(a), y = parse_real(b);
  if (x && y) return *x != *y ? *x < *y : a < b;
  return x.has_value() != y.has_value() ? x.has_value() : a < b;
}

}  // namespace

std::string Result::text(double value) const { return std::isfinite(value) ? print(value) : to_text(value); }

bool Result::better(double a, double b) const {
  if (!std::isfinite(a) || !std::isfinite(b)) return std::isfinite(a) && !std::isfinite(b);
  return high_is_best ? a > b : a < b;
}

Result result(const std::string& name, const std::vector<Condition>& conditions) {
  std::string wanted = name;
  if (wanted.empty()) {
    const bool valid =
        std::any_of(conditions.begin(), conditions.end(), [](const Condition& c) { return c.valid_loss.has_value(); });
    wanted = valid ? "valid_loss" : "final_loss";
  }
  std::vector<std::string> names;
  for (const Result& one : table()) {
    names.push_back(one.name);
    if (one.name != wanted) continue;
    Result made = one;
    if (made.print == loss) made.label += " (" + loss_unit(conditions) + ")";
    return made;
  }
  throw UsageError("a sweep cannot show '" + wanted + "'" + did_you_mean(wanted, names));
}

const Condition* best_of(const std::vector<Condition>& conditions, const Result& result) {
  const Condition* best = nullptr;
  for (const Condition& condition : conditions) {
    const double value = result.of(condition);
    if (!condition.bad() && std::isfinite(value) && (!best || result.better(value, result.of(*best))))
      best = &condition;
  }
  return best;
}

/// The different values of an attribute, in order; a condition without it counts as "-".
std::vector<std::string> levels(const std::vector<Condition>& conditions, const std::string& key) {
  std::vector<std::string> all;
  for (const Condition& condition : conditions) {
    const std::string value = condition.attribute(key).empty() ? "-" : condition.attribute(key);
    if (std::find(all.begin(), all.end(), value) == all.end()) all.push_back(value);
  }
  std::sort(all.begin(), all.end(), before);
  return all;
}

}  // namespace zs::summary
