// SPDX-License-Identifier: Apache-2.0
// What the many writers of logs call a thing, and what zs calls it.
#pragma once
#include <map>
#include <string>
#include <string_view>

namespace zs::parse {

/// The column that a key of a metric line means, and how surely: where two keys of a line mean one column, the
/// surer one has it and the other keeps its own name.
struct ColumnName {
  std::string_view column;
  int priority = 0;
};
/// "time" -> iteration_time, "train/loss" -> loss, ...; a key that is not known is a column of its own name.
ColumnName column_named(std::string_view key);

/// "NUM_PROCESSES" -> "world_size", "model_name" -> "model.name", ...; unknown keys stay as they are.
std::string attribute_named(std::string_view key);
/// Python's True and False as true and false; the rest as it is.
std::string_view attribute_value(std::string_view value);

}  // namespace zs::parse
