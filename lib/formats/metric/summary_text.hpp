// SPDX-License-Identifier: Apache-2.0
// The text form of a summary, without loss: what zs-aggregate writes into a pipe.
//   #zs-metrics 1 summary
//   #= KEY=VALUE                      about the whole
//   #table summary                    then "#table curves NAME" and "#table tables NAME" in the same form:
//   #: COLUMN int|real|text [UNIT]    for every column, in order
//   condition<TAB>runs<TAB>...        the header, and a line for each row
// Behind it stand the runs, in the text form of records. Fields and names are escaped as there (metric/escape.hpp).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "metric/table.hpp"

namespace zs::metric {

/// Summary, curves, tables and attributes of `store`, and its runs.
std::string to_summary_text(const Store& store);

/// Whether `text` begins with such a summary.
bool is_summary_text(std::string_view text);

/// A summary up to where its runs begin. Errors carry `name` and the line; `line` is that of the start of `text`.
Store read_summary_text(std::string_view text, const std::string& name, std::int64_t line);

}  // namespace zs::metric
