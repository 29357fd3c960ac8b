// SPDX-License-Identifier: Apache-2.0
// What a fact about a run is called, means and decides. The one table of attributes: every list of them is a filter
// over it. zs-metrics(5) describes the roles.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zs::attribute {

/// What follows where two runs differ in an attribute.
enum class Role : std::uint8_t {
  decides,      ///< it changes what is computed: the runs train different things
  arithmetic,   ///< it changes how numbers are rounded: other bits are expected
  layout,       ///< it must not change a bit: other bits are a fault
  measurement,  ///< an outcome: compared with statistics
  identity,     ///< who, when, where, or how much is written down: never compared
};
/// "decides", "arithmetic", ...
std::string_view name(Role role);

enum class Type : std::uint8_t { integer, real, text };

struct Attribute {
  std::string_view name;  ///< in metric files; a final '*' stands for the rest of the name: "source*"
  Role role = Role::decides;
  std::string_view label;      ///< for people
  std::string_view key{};      ///< in a configuration, "" where it is no setting
  std::string_view aliases{};  ///< other names and keys of it, separated by blanks
  /// The attribute by which it has its effect: where a run knows that one, only that one counts. A data set by the
  /// checksum of its tokens; ranks and batch by the global batch.
  std::string_view through{};
  std::string_view unit{};
  Type type = Type::text;
  std::string_view column{};  ///< in runs.csv, where it is neither `key` nor `name`
  bool main = false;          ///< what a reader of a report looks for first
  bool recorded = false;      ///< a column of the records: a value for every step
  bool repeats = false;       ///< an outcome that runs of the same training have to the last bit: loss, not time
  bool sums = false;          ///< a layout that changes the order of sums where `reduction` is "any"
  bool rounds = false;        ///< a layout that changes the order of sums always, and so is arithmetic
  bool work = false;          ///< it changes how much a step computes
  bool scaled = false;        ///< a study of scaling changes it together with the ranks
  bool found = false;         ///< the run finds it out; nobody sets it
  bool leads = false;         ///< a column that every registry has, in front of all others
  bool ending = false;        ///< how a run ended
  bool watches = false;       ///< what a training writes or evaluates on its way
  bool place = false;         ///< the name of a thing or a folder: what lies there counts, not the name
  bool program = false;       ///< which program trained
  bool circumstance = false;  ///< where, when and how busy: what may have changed a time
  bool per_run = false;       ///< of each run of an experiment, not of the experiment
};

/// The whole table, in the order in which people read it.
std::span<const Attribute> table();

/// The row of an attribute by any of its names (name, key, column, alias), or null: then it decides.
const Attribute* find(std::string_view any_name);
/// The role of an attribute by any of its names. One that the table does not know decides, so that no verdict comes too
/// early.
Role role(std::string_view any_name);
/// The name in metric files, of any of its names; an unknown one is its own.
std::string_view primary(std::string_view any_name);
/// The column of runs.csv.
std::string_view column(const Attribute& row);
/// What people read: the label, or the name of an unknown one.
std::string_view label(std::string_view any_name);

/// The names in the table's order, unknown ones last by letter.
std::vector<std::string> in_order(std::vector<std::string> names);

/// The rows that `keep` keeps, in the table's order.
template <typename Keep>
std::vector<const Attribute*> filtered(Keep keep) {
  std::vector<const Attribute*> rows;
  for (const Attribute& row : table()) {
    if (keep(row)) rows.push_back(&row);
  }
  return rows;
}

}  // namespace zs::attribute
