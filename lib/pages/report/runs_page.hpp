// SPDX-License-Identifier: Apache-2.0
// All runs of a registry as one self-contained HTML page: sorted, filtered and grouped in the browser, with the curves
// of chosen runs and whether they are equal.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "figure/theme.hpp"
#include "metric/table.hpp"
#include "registry/listing.hpp"
#include "registry/runs.hpp"

namespace zs::report {

/// A run's losses, thinned to steps that are multiples of a power of two, so that any two runs share points. Each point
/// has a hash of all losses up to it.
struct Curve {
  std::size_t rows = 0;                       ///< number of losses
  std::int64_t span = 0, stride = 1;          ///< steps from the first to the last; every stride-th is kept
  std::vector<std::uint32_t> at{}, hashes{};  ///< steps, FNV-1a
  std::vector<float> values{};                ///< NaN if a loss since the last point is not finite
  bool every_bit = true;                      ///< false: the losses have only the digits of a log
};
/// With about `most` points at most; nothing for a run without losses.
std::optional<Curve> curve_of(const metric::Run& run, std::size_t most);
/// Whether curve_of() would thin it equally.
bool fits(const Curve& curve, std::size_t most);

struct RunsPage {
  std::string title{};
  std::string tool{};                  ///< the program that writes it, with its version
  std::string folder{};                ///< the page's folder: links to reports and logs are relative to it
  std::vector<std::size_t> rows{};     ///< indices in the table of runs, in the initial order
  std::vector<std::string> columns{};  ///< initially visible; the others can be chosen
  int every = 0;                       ///< seconds between reloads by the browser; 0 for none
  /// The curve of a row, of at most `most` points; null if it has none.
  std::function<const Curve*(std::size_t row, std::size_t most)> curve{};
  /// The target of a click on a row, a report or a log; "" if there is none.
  std::function<std::string(std::size_t row)> link{};
};

/// The page. For 10,000 runs it has about 8 MB: each run's losses are thinned to the number of points that fit.
std::string to_html(const registry::Runs& runs, const RunsPage& page, const figure::Theme& theme);

/// The same for runs read from logs and summarised: a row per condition that matches `question`. `links`: the target of
/// a click on a condition, by its name.
std::string logs_page(const metric::Store& store, registry::Question question, RunsPage page,
                      const std::map<std::string, std::string>& links);

/// The path of a file relative to a page in `folder`.
std::string link_from(const std::string& folder, const std::string& file);

}  // namespace zs::report
