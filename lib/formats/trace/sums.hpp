// SPDX-License-Identifier: Apache-2.0
// What the analyses of traces share: numbers as text, statistics of samples, unions of spans.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/sheet.hpp"
#include "trace/trace.hpp"

namespace zs::trace {

/// What an analysis is asked with.
struct Settings {
  double kernel_delay = 30;  ///< us: a shorter gap behind a kernel is its successor's, not somebody's
  std::size_t most = 10;     ///< rows of a table of names
};

std::string text(double value);
std::string text(std::size_t value);
/// 100 part / whole, rounded to 1 / `scale`; "" of nothing.
std::string percent(double part, double whole, double scale = 100);
std::string rank_of(const Trace& trace);

/// Count, sum, mean, standard deviation (n - 1; 0 of one), least, greatest. REQUIRES: there are values.
std::vector<std::string> figures(const std::vector<double>& values);
/// By linear interpolation. REQUIRES: there are values.
double quantile(const std::vector<double>& sorted, double share);

/// A row for each name of most time, and one for the others; the first column is called `what`.
Sheet by_name(const char* what, std::map<std::string, std::vector<double>> times, const Settings& settings);

/// A time from `begin` to `end`.
struct Span {
  double begin, end;
};
/// The union of spans: those that touch are one.
std::vector<Span> merged(std::vector<Span> spans);
double length(const std::vector<Span>& spans);

/// Whether it is a kernel, a copy or a memset that ran on a stream.
bool on_stream(const Event& event);

}  // namespace zs::trace
