// SPDX-License-Identifier: Apache-2.0
// Tables of runs that other programs have kept, taken into a registry.
#pragma once
#include <cstddef>
#include <string>

#include "base/error.hpp"

namespace zs::registry {

struct Imported {
  std::size_t made = 0, known = 0;  ///< runs that were recorded now, and that were before
};

/// Makes a record for each row of a table, CSV or tab-separated ("-": stdin): its columns are the fields, run_name the
/// name (else condition, as zs-aggregate calls it), run_id "imported_id", and "imported_from" says the file. The file
/// stays as it is. A row that is in the registry already, by its id, is known. Whole numbers that a table with gaps has
/// as "32.0" are "32" where the field is one; "None" is nothing; secrets are withheld. A row with more or fewer cells
/// than the header is a fault, and left out. Throws Error where the file cannot be read, has no header, or a column
/// twice.
Imported import_runs(const std::string& registry, const std::string& csv, const FaultSink& faults);

/// The same of what was read from `csv` already.
Imported import_text(const std::string& registry, const std::string& csv, std::string text, const FaultSink& faults);

}  // namespace zs::registry
