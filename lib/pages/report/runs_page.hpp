// SPDX-License-Identifier: Apache-2.0
// All runs of a registry as one HTML page, which loads nothing: sorted, filtered and grouped in the browser, with the
// curves of chosen runs and what can be said of their equality.
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

/// A run's losses, thinned: at steps that are multiples of a power of two, so that any two runs share points. Each
/// point has a hash of all losses up to it.
struct Curve {
  std::size_t rows = 0;                       ///< losses that there are
  std::int64_t span = 0, stride = 1;          ///< steps from the first to the last; of which every stride-th is here
  std::vector<std::uint32_t> at{}, hashes{};  ///< steps, FNV-1a
  std::vector<float> values{};                ///< NaN where a loss since the last point is not finite
  bool every_bit = true;                      ///< false: the losses are known as a log printed them
};
/// Of at most about `most` points; nothing of a run without losses.
std::optional<Curve> curve_of(const metric::Run& run, std::size_t most);
/// Whether curve_of() would thin it so.
bool fits(const Curve& curve, std::size_t most);

struct RunsPage {
  std::string title{};
  std::string tool{};                  ///< what writes it, with its version
  std::string folder{};                ///< where the page will stand: links to reports and logs are relative to it
  std::vector<std::size_t> rows{};     ///< of the table of runs, in this order at first
  std::vector<std::string> columns{};  ///< shown at first; the others can be chosen
  int every = 0;                       ///< seconds after which a browser reads the page again; 0 for never
  /// The curve of a row, of at most so many points; null where it has none.
  std::function<const Curve*(std::size_t row, std::size_t most)> curve{};
  /// What a click on a row opens, a report or a log; "" where there is none.
  std::function<std::string(std::size_t row)> link{};
};

/// The page. Of 10,000 runs it has about 8 MB: each run's losses are thinned to as many points as fit.
std::string to_html(const registry::Runs& runs, const RunsPage& page, const figure::Theme& theme);

/// The same of runs that were read from logs and summarised: a row a condition, those that `question` asks for.
/// `links`: what a click on a condition opens, by its name.
std::string logs_page(const metric::Store& store, registry::Question question, RunsPage page,
                      const std::map<std::string, std::string>& links);

/// The path of a file as a page in `folder` names it.
std::string link_from(const std::string& folder, const std::string& file);

}  // namespace zs::report
