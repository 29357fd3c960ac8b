// SPDX-License-Identifier: Apache-2.0
// The report of two probes: where two trainings part, as a sentence, and a map of how far apart they are.
#pragma once
#include <string>

#include "report/document.hpp"

namespace zs::report {

/// REQUIRES: probe::version() of both is 2. The verdict is good where no difference is beyond rounding, bad where one
/// is or where a record proves nothing, open where one lacks what the other has. Throws Error where a record is
/// damaged.
Document probes(const std::string& a, const std::string& b);

}  // namespace zs::report
