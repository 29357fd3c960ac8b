// SPDX-License-Identifier: Apache-2.0
// Queries of the table of runs: select, sort, and find one.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "registry/runs.hpp"

namespace re2 {
class RE2;
}

namespace zs::registry {

/// The column that `name` means: itself, the setting with that alias or
/// zs-train option, or the only column that ends in ".name". Throws Error
/// with the nearest name if there is none, or with all if there are several.
std::string resolve_column(const Runs& runs, const std::string& name);

enum class Relation { equal, unequal, less, at_most, greater, at_least, match, mismatch };

/// A condition like "training.learning_rate<=6e-4". Two numbers are compared as numbers (6e-4 = 0.0006), else as texts;
/// a number and a text are unequal, and neither is less. An absent cell is equal only to "" ("status=" selects it); nan
/// is equal only to nan.
struct Filter {
  std::string column;
  Relation relation = Relation::equal;
  std::string value;
  std::shared_ptr<const re2::RE2> pattern;  ///< for "~" and "!~": matches anywhere in the cell

  bool holds(const std::string& cell) const;
};

/// Parses COLUMN followed by = != < <= > >= ~ or !~ and a value. Throws Error at anything else.
Filter parse_filter(const Runs& runs, const std::string& text);

/// The rows that match all filters (with `any`: at least one), in the table's order.
std::vector<std::size_t> select(const Runs& runs, const std::vector<Filter>& filters, bool any);

/// Sorts rows by a column: numbers by value, then nan, then
/// texts; absent cells last, also when `descending`. Stable.
void sort_by(const Runs& runs, const std::string& column, bool descending, std::vector<std::size_t>& rows);

/// The row of the run with that id, else of the only run with that id prefix, else of the only run with that name.
/// Throws Error with the nearest name if there is none, or with all if there are several.
std::size_t find_run(const Runs& runs, const std::string& name);

/// A run that was found.
struct Place {
  std::string folder, name;
};

/// The run for an operand that is not a path: as find_run(). Throws Error if there is none, and if `name` can only be a
/// missing path: it has a '/', or there is no folder `registry`.
Place place_of(const std::string& name, const std::string& registry);

}  // namespace zs::registry
