// SPDX-License-Identifier: Apache-2.0
// The report on revisions of one training: whether numbers and speed are the same.
#pragma once
#include <string>

#include "report/comparison.hpp"
#include "report/document.hpp"

namespace zs::report {

/// Throws as compare() does.
Document revision(const metric::Store& store, const Findings& found, const std::string& source,
                  const std::string& folder, const Gate& gate);

/// The comparison as JSON, which is in the document of revision(): the verdict, each answer with its numbers, and every
/// run with its record. Numbers that are not finite are null.
std::string to_json(const Comparisons& all, const Findings& found, const Gate& gate);

}  // namespace zs::report
