// SPDX-License-Identifier: Apache-2.0
// The report on a sweep: many conditions, a few parameters, and which is best.
#pragma once
#include <string>

#include "plot/figures.hpp"
#include "report/document.hpp"
#include "report/findings.hpp"

namespace zs::report {

/// `options` name the result to judge by, and the rows and columns of the map, if the user chose them. Throws
/// UsageError at an unknown one, Error if no condition has the result.
Document sweep(const metric::Store& store, const Findings& found, const std::string& source, const std::string& folder,
               const plot::Options& options);

}  // namespace zs::report
