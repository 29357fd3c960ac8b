// SPDX-License-Identifier: Apache-2.0
// The report on a sweep: many conditions, a few parameters, and which is best.
#pragma once
#include <string>

#include "plot/figures.hpp"
#include "report/document.hpp"
#include "report/findings.hpp"
#include "summary/result.hpp"

namespace zs::report {

/// The result: "3.2104"; of several runs also their standard deviation and number: "3.2104 ± 0.0021 (6 runs)".
std::string with_spread(const Condition& condition, const summary::Result& result);

/// `options` name the result to judge by, and the rows and columns of the map, if the user chose them. Throws
/// UsageError at an unknown one, Error if no condition has the result.
Document sweep(const metric::Store& store, const Findings& found, const std::string& source, const std::string& folder,
               const plot::Options& options);

}  // namespace zs::report
