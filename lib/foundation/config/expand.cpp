// SPDX-License-Identifier: Apache-2.0
// From a sweep to its runs: the grid, and the random draw.
#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <unordered_map>

#include "base/error.hpp"
#include "base/number.hpp"
#include "config/sweep.hpp"

namespace zs::config {
namespace {

constexpr std::uint64_t kMostRuns = 100'000;
Entry value(const Parameter& parameter, std::uint64_t index) {
  if (!parameter.values.empty()) return parameter.values[index];
  return {parameter.key, to_text(static_cast<std::int64_t>(parameter.lowest) + static_cast<std::int64_t>(index)),
          parameter.origin, Kind::plain};
}

/// The combination of that index, the last parameter varying fastest.
std::vector<Entry> combination(const Sweep& sweep, std::uint64_t index) {
  std::vector<Entry> entries(sweep.parameters.size());
  for (std::size_t i = entries.size(); i-- > 0;) {
    const std::uint64_t size = *sweep.parameters[i].size();
    entries[i] = value(sweep.parameters[i], index % size);
    index /= size;
  }
  return entries;
}

/// Draws that do not depend on the standard library's distributions, whose results are not standardised.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed) {}
  /// Uniform below `bound`, without bias.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    std::uint64_t draw = bits_();
    while (draw >= limit) draw = bits_();
    return draw % bound;
  }
  /// Uniform in [0, 1).
  double unit() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 bits_;
};

/// Six significant digits: readable, and the same whatever the last bit of exp() is.
double rounded(double x) {
  if (x == 0) return x;
  const double scale = std::pow(10.0, 5 - std::floor(std::log10(std::fabs(x))));
  return std::isfinite(scale) && scale > 0 ? *parse_real(to_text(std::round(x * scale) / scale)) : x;
}

Entry draw(const Parameter& parameter, Dice& dice) {
  if (const auto size = parameter.size()) return value(parameter, dice.below(*size));
  const bool log = parameter.distribution == Distribution::log_uniform;
  const double low = log ? std::log(parameter.lowest) : parameter.lowest,
               high = log ? std::log(parameter.highest) : parameter.highest;
  const double at = low + dice.unit() * (high - low);
  const double x = std::clamp(rounded(log ? std::exp(at) : at), parameter.lowest, parameter.highest);
  return {parameter.key, to_text(x), parameter.origin, Kind::plain};
}

std::vector<std::vector<Entry>> draw_runs(const Sweep& sweep) {
  Dice dice(sweep.seed);
  std::vector<std::vector<Entry>> runs;
  const auto wanted = static_cast<std::size_t>(sweep.num_runs);
  if (const auto total = sweep.combinations()) {
    // Fisher and Yates' shuffle of all indices, of which only the touched ones are kept.
    std::unordered_map<std::uint64_t, std::uint64_t> moved;
    const auto at = [&](std::uint64_t i) { return moved.count(i) ? moved[i] : i; };
    for (std::uint64_t i = 0; i < wanted; ++i) {
      const std::uint64_t j = i + dice.below(*total - i);
      const std::uint64_t chosen = at(j);
      moved[j] = at(i);
      runs.push_back(combination(sweep, chosen));
    }
    return runs;
  }
  std::set<std::vector<std::string>> seen;
  for (std::size_t tries = 0; runs.size() < wanted; ++tries) {
    if (tries > 1000 + 100 * wanted)
      throw Error("the ranges of the sweep hold too few values for num_runs " + std::to_string(wanted));
    std::vector<Entry> run;
    std::vector<std::string> texts;
    for (const Parameter& parameter : sweep.parameters) texts.push_back(run.emplace_back(draw(parameter, dice)).value);
    if (seen.insert(texts).second) runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace

std::optional<std::uint64_t> Sweep::combinations() const {
  std::uint64_t product = 1;
  for (const Parameter& parameter : parameters) {
    const auto size = parameter.size();
    if (!size || __builtin_mul_overflow(product, *size, &product)) return {};
  }
  return product;
}

std::uint64_t run_count(const Sweep& sweep) {
  if (sweep.random) return static_cast<std::uint64_t>(sweep.num_runs);
  for (const Parameter& parameter : sweep.parameters) {
    if (!parameter.size())
      throw Error(parameter.origin, 0,
                  parameter.key + " is a continuous range: a grid needs values (or choose strategy: random)");
  }
  const auto total = sweep.combinations();
  if (!total) throw Error("the sweep has more than 2^64 runs");
  return *total;
}

std::vector<std::vector<Entry>> expand(const Sweep& sweep) {
  const std::uint64_t count = run_count(sweep);
  if (count > kMostRuns)
    throw Error("the sweep has " + std::to_string(count) + " runs, more than " + std::to_string(kMostRuns));
  if (sweep.random) return draw_runs(sweep);
  std::vector<std::vector<Entry>> runs;
  for (std::uint64_t i = 0; i < count; ++i) runs.push_back(combination(sweep, i));
  return runs;
}

}  // namespace zs::config
