// SPDX-License-Identifier: Apache-2.0
#include "trace/sums.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/number.hpp"

namespace zs::trace {

std::string text(double value) {
  // Times are whole nanoseconds: what a sum of doubles adds to one behind its third digit is no figure.
  const double whole = std::round(value * 1000) / 1000;
  return to_text(std::fabs(value - whole) <= 1e-12 * std::max(1e3, std::fabs(value)) ? whole : value);
}
std::string text(std::size_t value) { return to_text(static_cast<std::int64_t>(value)); }
std::string percent(double part, double whole, double scale) {
  return whole > 0 ? to_text(std::round(100 * part / whole * scale) / scale) : "";
}

std::string rank_of(const Trace& trace) { return to_text(trace.rank); }

namespace {

struct Sum {
  std::string label;
  std::vector<double> values;
  double total() const { return std::accumulate(values.begin(), values.end(), 0.0); }
};

}  // namespace

std::vector<std::string> figures(const std::vector<double>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0),
               mean = sum / static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = values.size() > 1 ? std::sqrt(squares / static_cast<double>(values.size() - 1)) : 0;
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  return {text(values.size()), text(sum), text(mean), text(deviation), text(*least), text(*greatest)};
}

Sheet by_name(const char* what, std::map<std::string, std::vector<double>> times, const Settings& settings) {
  Sheet answer{{what, "count", "time", "mean", "std", "min", "max"}, {}};
  std::vector<Sum> sums;
  for (auto& [label, values] : times) sums.push_back({label, std::move(values)});
  std::ranges::stable_sort(sums, [](const Sum& a, const Sum& b) { return a.total() > b.total(); });
  Sum others{"(" + text(sums.size() - std::min(sums.size(), settings.most)) + " others)", {}};
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (i >= settings.most) {
      others.values.insert(others.values.end(), sums[i].values.begin(), sums[i].values.end());
      continue;
    }
    answer.rows.push_back(figures(sums[i].values));
    answer.rows.back().insert(answer.rows.back().begin(), sums[i].label);
  }
  if (!others.values.empty()) {
    answer.rows.push_back(figures(others.values));
    answer.rows.back().insert(answer.rows.back().begin(), others.label);
  }
  return answer;
}

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - static_cast<double>(low));
}

std::vector<Span> merged(std::vector<Span> spans) {
  std::ranges::sort(spans, [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<Span> united;
  for (const Span& span : spans) {
    if (!united.empty() && span.begin <= united.back().end)
      united.back().end = std::max(united.back().end, span.end);
    else
      united.push_back(span);
  }
  return united;
}

double length(const std::vector<Span>& spans) {
  return std::accumulate(spans.begin(), spans.end(), 0.0,
                         [](double sum, const Span& s) { return sum + s.end - s.begin; });
}

bool on_stream(const Event& event) {
  return event.stream != -1 && (event.category == Category::kernel || event.category == Category::memcpy ||
                                event.category == Category::memset);
}

}  // namespace zs::trace
