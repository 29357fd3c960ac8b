// SPDX-License-Identifier: Apache-2.0
// Questions to the table of runs: which runs, in which order, and which one is meant.
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

/// The name of the column that `name` means: itself, the setting that it is an alias or a zs-train option of, or the
/// only column that ends in ".name". Throws Error naming the nearest where there is none, or all where there are
/// several.
std::string resolve_column(const Runs& runs, const std::string& name);

enum class Relation { equal, unequal, less, at_most, greater, at_least, match, mismatch };

/// "training.learning_rate<=6e-4". Two numbers compare as numbers (6e-4 = 0.0006), else as texts; a number and a text
/// are unequal, and neither is less. An absent cell is unequal to everything but "" ("status=" asks for it); nan is
/// equal to nan only.
struct Filter {
  std::string column;
  Relation relation = Relation::equal;
  std::string value;
  std::shared_ptr<const re2::RE2> pattern;  ///< of "~" and "!~": found anywhere in the cell

  bool holds(const std::string& cell) const;
};

/// Reads COLUMN followed by = != < <= > >= ~ or !~ and a value. Throws Error at what it is not.
Filter parse_filter(const Runs& runs, const std::string& text);

/// The rows for which all filters hold (with `any`: at least one of them), in the table's order.
std::vector<std::size_t> select(const Runs& runs, const std::vector<Filter>& filters, bool any);

/// Sorts rows by a column: numbers by value, then nan, then texts; absent cells come last, also when `descending`.
/// Equal ones keep their order.
void sort_by(const Runs& runs, const std::string& column, bool descending, std::vector<std::size_t>& rows);

/// The row of the run with that id, else of the only one whose id begins so, else of the only one of that name.
/// Throws Error where there is none, naming the nearest, or several, listing them.
std::size_t find_run(const Runs& runs, const std::string& name);

/// A run that was found.
struct Place {
  std::string folder, name;
};

/// The run that an operand means which is no path: as find_run(). Throws Error where there is none, and where `name`
/// can only be a path that does not exist: it has a '/', or there is no folder `registry`.
Place place_of(const std::string& name, const std::string& registry);

}  // namespace zs::registry
