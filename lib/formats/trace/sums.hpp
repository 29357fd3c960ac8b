// SPDX-License-Identifier: Apache-2.0
// Shared by the analyses of traces: numbers as text, statistics of samples, unions of intervals.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/sheet.hpp"
#include "trace/trace.hpp"

namespace zs::trace {

/// The settings of an analysis.
struct Settings {
  double kernel_delay = 30;  ///< us: a shorter gap after a kernel is attributed to its successor
  std::size_t most = 10;     ///< rows of a table of names
};

/// A time or another figure; noise of sums behind the nanosecond is removed.
std::string text(double value);
std::string text(std::size_t value);
/// 100 part / whole, rounded to 1 / `scale`; "" if whole is 0.
std::string percent(double part, double whole, double scale = 100);
std::string rank_of(const Trace& trace);

/// Count, sum, mean, standard deviation (n - 1; 0 of one), minimum, maximum. REQUIRES: there are values.
std::vector<std::string> figures(const std::vector<double>& values);
/// By linear interpolation. REQUIRES: there are values.
double quantile(const std::vector<double>& sorted, double share);

/// A row for each of the names with the most time, and one for the rest; the first column is called `what`.
Sheet by_name(const char* what, std::map<std::string, std::vector<double>> times, const Settings& settings);

/// An interval of time.
struct Span {
  double begin, end;
};
/// The union of spans; touching spans are joined.
std::vector<Span> merged(std::vector<Span> spans);
double length(const std::vector<Span>& spans);

/// Whether it is a kernel, a copy or a memset on a stream.
bool on_stream(const Event& event);

}  // namespace zs::trace
