// SPDX-License-Identifier: Apache-2.0
#include "config/conditions.hpp"

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/name.hpp"
#include "base/shell.hpp"
#include "config/share.hpp"
#include "config/yaml.hpp"

namespace zs::config {
namespace {

/// One option as words: {stage: 1} is "--stage 1", {compile: true} is "--compile", {compile: false} is nothing.
void add_option(const Pair& option, const std::string& file, std::vector<std::string>& words) {
  const YAML::Node& value = option.value;
  if (value.IsScalar() && !quoted(value) && value.Scalar() == "false") return;
  words.push_back("--" + option.key);
  if (value.IsScalar() && !quoted(value) && value.Scalar() == "true") return;
  if (value.IsScalar()) {
    words.push_back(value.Scalar());
    return;
  }
  if (!value.IsSequence())
    throw Error(file, option.line, "option '" + option.key + "' needs a value, a list, true or false");
  for (const YAML::Node& item : value) {
    if (!item.IsScalar()) throw Error(file, option.line, "option '" + option.key + "' must be a list of values");
    words.push_back(item.Scalar());
  }
}

Condition condition_of(const Pair& pair, const std::string& file) {
  if (!names_file(pair.key))
    throw Error(file, pair.line, "'" + pair.key + "' cannot name a condition: use letters, digits, '_', '-', '.'");
  Condition condition{pair.key, ""};
  if (pair.value.IsScalar()) {
    condition.options = pair.value.Scalar();
    if (condition.options.find_first_of("\n\t\r") != std::string::npos) {
      throw Error(file, pair.line, "the options of '" + pair.key + "' must stand on one line, without tabs");
    }
  } else if (pair.value.IsMap()) {
    std::vector<std::string> words;
    for (const Pair& option : pairs(pair.value, file, "options")) add_option(option, file, words);
    condition.options = shell_quoted(words);
  } else if (!pair.value.IsNull()) {
    throw Error(file, pair.line, "the options of '" + pair.key + "' must be a mapping or a text");
  }
  return condition;
}

ConditionSet set_of(const Pair& pair, const std::string& file) {
  ConditionSet set{pair.key, "", {}};
  for (const Pair& part : pairs(pair.value, file, "set '" + pair.key + "'")) {
    if (part.key == "description" && part.value.IsScalar()) {
      set.description = part.value.Scalar();
    } else if (part.key == "conditions") {
      for (const Pair& condition : pairs(part.value, file, "the conditions of '" + pair.key + "'"))
        set.conditions.push_back(condition_of(condition, file));
    } else {
      throw Error(file, part.line,
                  "'" + part.key + "' in set '" + pair.key + "': expected description (a text) and conditions");
    }
  }
  if (set.conditions.empty()) throw Error(file, pair.line, "set '" + pair.key + "' has no conditions");
  return set;
}

}  // namespace

std::vector<ConditionSet> parse_conditions(std::string_view yaml, const std::string& name) {
  std::vector<ConditionSet> sets;
  for (const Pair& part : pairs(document(yaml, name), name, "a file of conditions")) {
    if (part.key == "options") continue;  // a place for anchors
    if (part.key != "sets") throw Error(name, part.line, "unknown key '" + part.key + "', expected options and sets");
    for (const Pair& set : pairs(part.value, name, "sets")) sets.push_back(set_of(set, name));
  }
  if (sets.empty()) throw Error(name, 0, "has no sets");
  return sets;
}

std::vector<ConditionSet> read_conditions(const std::string& file) {
  std::string path = file;
  if (file != "-" && file.find('/') == std::string::npos && !std::filesystem::exists(file)) {
    path = share_path("conditions/" + file + (file.ends_with(".yaml") ? "" : ".yaml"));
  }
  Input input(path);
  return parse_conditions(input.read_all(), input.name());
}

const ConditionSet& find_set(const std::vector<ConditionSet>& sets, const std::string& name, const std::string& file) {
  std::vector<std::string> names;
  std::string all;
  for (const ConditionSet& set : sets) {
    if (set.name == name) return set;
    names.push_back(set.name);
    all += (all.empty() ? "" : ", ") + set.name;
  }
  const std::string hint = did_you_mean(name, names);
  throw Error(file, 0, "no set '" + name + "'" + (hint.empty() ? ": there are " + all : hint));
}

}  // namespace zs::config
