// SPDX-License-Identifier: Apache-2.0
// A line of a recording as a row: the fields of its list, and no others.
#pragma once
#include <string_view>
#include <variant>

#include "probefile/fields.hpp"

namespace zs::probefile {

/// Throws Error, without a place, if the line is not of zs_probe, lacks a field or has another one.
std::variant<HeadRow, StartRow, StepRow, EndRow> parse(std::string_view line);

}  // namespace zs::probefile
