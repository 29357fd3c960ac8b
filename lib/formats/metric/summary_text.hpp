// SPDX-License-Identifier: Apache-2.0
// The lossless text form of a summary, which zs-aggregate writes into a pipe.
//   #zs-metrics 1 summary
//   #= KEY=VALUE                      about the whole
//   #table summary                    then "#table curves NAME" and "#table tables NAME" in the same form:
//   #: COLUMN int|real|text [UNIT]    for every column, in order
//   condition<TAB>runs<TAB>...        the header, and a line for each row
// The runs follow in the text form of records. Fields and names are escaped as there (metric/escape.hpp).
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

/// Reads a summary up to the start of its runs. Errors carry `name` and the line; `text` begins at line `line`.
Store read_summary_text(std::string_view text, const std::string& name, std::int64_t line);

}  // namespace zs::metric
