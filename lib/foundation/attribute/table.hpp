// SPDX-License-Identifier: Apache-2.0
// The table of attributes: name, meaning and role of each fact about a run. Every list of attributes is a filter over
// it. zs-metrics(5) describes the roles.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zs::attribute {

/// The consequence if two runs differ in an attribute.
enum class Role : std::uint8_t {
  decides,      ///< changes what is computed: the runs train different things
  arithmetic,   ///< changes rounding: other bits are expected
  layout,       ///< must not change a bit: other bits are a fault
  measurement,  ///< an outcome: compared by statistics
  identity,     ///< who, when, where, or how much is logged: never compared
};
/// "decides", "arithmetic", ...
std::string_view name(Role role);

enum class Type : std::uint8_t { integer, real, text };

struct Attribute {
  std::string_view name;  ///< in metric files; a final '*' matches the rest of the name: "source*"
  Role role = Role::decides;
  std::string_view label;      ///< for people
  std::string_view key{};      ///< in a configuration; "" if it is not a setting
  std::string_view aliases{};  ///< its other names and keys, separated by blanks
  /// The attribute that this one acts through: if a run has that one, only that one counts. A data set acts through the
  /// checksum of its tokens, ranks and batch through the global batch.
  std::string_view through{};
  std::string_view unit{};
  Type type = Type::text;
  std::string_view column{};  ///< in runs.csv, if neither `key` nor `name`
  bool main = false;          ///< shown first in a report
  bool recorded = false;      ///< a column of the records: a value for every step
  bool repeats = false;       ///< an outcome that is equal to the last bit in runs of the same training: loss, not time
  bool rounds = false;        ///< a layout that always changes the order of sums, and so is arithmetic
  bool work = false;          ///< it changes how much a step computes
  bool scaled = false;        ///< varied together with the ranks in a study of scaling
  bool found = false;         ///< determined by the run, not set by the user
  bool leads = false;         ///< a column that every registry has, before all others
  bool ending = false;        ///< how a run ended
  bool watches = false;       ///< what a training writes or evaluates while it runs
  bool place = false;         ///< a name or a folder: its content counts, and the name does not
  bool program = false;       ///< the program that trained
  bool circumstance = false;  ///< where, when and how busy: may have changed a time
  bool per_run = false;       ///< belongs to a run of an experiment; the experiment as a whole has none
};

/// The whole table, in reading order.
std::span<const Attribute> table();

/// The row of an attribute by any of its names (name, key, column, alias); null if unknown, whose role is `decides`.
const Attribute* find(std::string_view any_name);
/// The role of an attribute by any of its names. An unknown attribute decides, so that runs are never called equal
/// without reason.
Role role(std::string_view any_name);
/// The name in metric files, from any of its names; an unknown name is returned as it is.
std::string_view primary(std::string_view any_name);
/// The column of runs.csv.
std::string_view column(const Attribute& row);
/// The label for people; an unknown name is returned as it is.
std::string_view label(std::string_view any_name);

/// The names in the table's order, unknown ones last in alphabetical order.
std::vector<std::string> in_order(std::vector<std::string> names);

/// The rows for which `keep` is true, in the table's order.
template <typename Keep>
std::vector<const Attribute*> filtered(Keep keep) {
  std::vector<const Attribute*> rows;
  for (const Attribute& row : table()) {
    if (keep(row)) rows.push_back(&row);
  }
  return rows;
}

}  // namespace zs::attribute
