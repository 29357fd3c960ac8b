// SPDX-License-Identifier: Apache-2.0
// Translates names of other programs' logs to names of zs.
#pragma once
#include <string>
#include <string_view>

namespace zs::parse {

/// The column for a key of a metric line, and how certain that is: if two keys of a line mean the same column, the more
/// certain one gets it and the other keeps its own name.
struct ColumnName {
  std::string_view column;
  int priority = 0;
};
/// "time" -> iteration_time, "train/loss" -> loss, ...; an unknown key is a column under its own name.
ColumnName column_named(std::string_view key);

/// The unit at the end of a key, "step_time_ms", "peak (GB)"; "" if there is none.
std::string_view unit_of_key(std::string_view key);

/// "NUM_PROCESSES" -> "world_size", "model_name" -> "model.name", ...; unknown keys stay as they are.
std::string attribute_named(std::string_view key);
/// Python's True and False as true and false; any other value unchanged.
std::string_view attribute_value(std::string_view value);

}  // namespace zs::parse
