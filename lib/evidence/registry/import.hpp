// SPDX-License-Identifier: Apache-2.0
// Imports tables of runs from other programs into a registry.
#pragma once
#include <cstddef>
#include <string>

#include "base/error.hpp"

namespace zs::registry {

struct Imported {
  std::size_t made = 0, known = 0;  ///< runs recorded now, and runs that existed before
};

/// Makes a record for each row of a CSV or tab-separated table ("-": stdin): its columns are the fields, run_name the
/// name (else condition, as in zs-aggregate), run_id becomes "imported_id", and "imported_from" is the file. The file
/// is not changed. A row whose id is in the registry counts as known. Whole numbers that a table with gaps has as
/// "32.0" become "32" if the field is an integer; "None" becomes empty; secrets are withheld. A row with more or fewer
/// cells than the header is a fault, and left out. Throws Error if it has no header, or a duplicate column.
/// `text` is the content of `csv`.
Imported import_text(const std::string& registry, const std::string& csv, std::string text, const FaultSink& faults);

}  // namespace zs::registry
