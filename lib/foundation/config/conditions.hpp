// SPDX-License-Identifier: Apache-2.0
// Condition sets: named lists of zs-train options, to compare with one another. Users add sets by editing YAML.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace zs::config {

struct Condition {
  std::string name;     ///< letters, digits, '_', '-', '.': part of file names
  std::string options;  ///< options of zs-train, or of the command `run`, quoted for a shell if necessary
};

struct ConditionSet {
  std::string name;
  std::string description;
  std::vector<Condition> conditions;
  std::string run{};     ///< the command that starts a training, if not zs-train; else ""
  std::string resume{};  ///< words that resume such a training; or ""
};

/// The sets of a file, in order. `file` is a path, or the name of a file in share/conditions ("batch"). Throws Error
/// with the line if the file does not follow the format in the header of share/conditions/batch.yaml.
std::vector<ConditionSet> read_conditions(const std::string& file);
/// Like read_conditions(), from the text `yaml`, which messages call `name`.
std::vector<ConditionSet> parse_conditions(std::string_view yaml, const std::string& name);

/// The set called `name`; throws Error with the nearest, or all names, if there is none. `file` is for the message.
const ConditionSet& find_set(const std::vector<ConditionSet>& sets, const std::string& name, const std::string& file);

}  // namespace zs::config
