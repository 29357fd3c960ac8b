// SPDX-License-Identifier: Apache-2.0
// Condition sets: named lists of zs-train options, to be run beside one another. Users add sets by editing YAML.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace zs::config {

struct Condition {
  std::string name;     ///< letters, digits, '_', '-', '.': it names files
  std::string options;  ///< options of zs-train, or of what `run` starts, quoted for a shell where they need it
};

struct ConditionSet {
  std::string name;
  std::string description;
  std::vector<Condition> conditions;
  std::string run{};     ///< the command that runs a training, where it is not zs-train; else ""
  std::string resume{};  ///< words that go on with such a training; or ""
};

/// The sets of a file, in order. `file` is a path, or the name of a file of share/conditions ("batch").
/// Throws Error, with the line, at what is not as the header of share/conditions/batch.yaml describes.
std::vector<ConditionSet> read_conditions(const std::string& file);
/// As read_conditions(), of `yaml`, which messages call `name`.
std::vector<ConditionSet> parse_conditions(std::string_view yaml, const std::string& name);

/// The set called `name`; throws Error naming the nearest, or all, where there is none. `file` is for the message.
const ConditionSet& find_set(const std::vector<ConditionSet>& sets, const std::string& name, const std::string& file);

}  // namespace zs::config
