// SPDX-License-Identifier: Apache-2.0
// Phrases and numbers that the sections share.
#pragma once
#include <string>
#include <vector>

#include "attribute/table.hpp"
#include "base/words.hpp"
#include "report/document.hpp"
#include "summary/condition.hpp"
#include "summary/losses.hpp"

namespace zs::report {

/// "a", "a and b", "a, b and c"; or with other words between them.
Text joined(const std::vector<Text>& texts, const char* between = ", ", const char* last = " and ");
/// The names of conditions as code, joined; after `most` the rest is counted: "a, b and 3 more".
Text names(const std::vector<const summary::Condition*>& conditions, std::size_t most = 8);
/// An attribute as the title of a column: "share of the data (%)".
std::string titled(const attribute::Attribute& row);
/// A loss: all its digits if few, else six significant ones.
std::string loss_text(double value);
/// With its unit, if that is known: "2.5 nats/token".
inline std::string loss_text(double value, const std::string& unit) {
  return loss_text(value) + (unit.empty() ? "" : " " + unit);
}
/// How far a pair is apart beside its repeated runs: " (by 0.05 in the mean of a tenth of the steps, where repeated
/// runs vary by 0.01)".
std::string beside_repeats(const summary::Pair& pair, const std::string& unit);
/// "12 %", "0.34 %", "0.0012 %": two significant digits, never "0 %" for a value that is not 0.
std::string percent(double ratio);
/// "FAILED (exit code 9) at step 30": the status with its details.
std::string status_text(const summary::Condition& condition);

/// Makes numbers that link to their records: adds each origin to the document.
class Tracer {
 public:
  /// `folder` is the report's folder: paths are relative to it.
  Tracer(Document& document, std::string folder) : document_(document), folder_(std::move(folder)) {}

  /// The value of `column`, printed as `text`. Its source records follow from its name: the last (final_), the first
  /// (first_), the smallest (best_), the largest (peak_), those after warm-up (time_), or all.
  Span number(const summary::Condition& condition, summary::Condition::Column column, const std::string& text);

 private:
  Document& document_;
  std::string folder_;
};

/// The path of a log relative to `folder`, or "" if there is no such file.
std::string link_to(const std::string& path, const std::string& folder);

}  // namespace zs::report
