// SPDX-License-Identifier: Apache-2.0
#include "config/conditions.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/name.hpp"
#include "base/words.hpp"
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

/// Words shared by conditions, by their name: {name}.
using Shared = std::map<std::string, std::string>;

/// The text with each {name} replaced; unchanged if nothing is shared.
std::string filled(std::string text, const Shared& shared, const std::string& file, std::int64_t line) {
  if (shared.empty()) return text;
  for (std::size_t begin = text.find('{'); begin != std::string::npos; begin = text.find('{', begin)) {
    const std::size_t end = text.find('}', begin);
    const std::string name = text.substr(begin + 1, end - std::min(end, begin + 1));
    const auto found = shared.find(name);
    if (end == std::string::npos || found == shared.end()) {
      std::vector<std::string> names;
      for (const auto& [each, ignored] : shared) names.push_back(each);
      throw Error(file, line, "nothing is called '" + name + "' in common_options" + did_you_mean(name, names));
    }
    text.replace(begin, end + 1 - begin, found->second);
    begin += found->second.size();
  }
  return text;
}

const std::string& text_of(const Pair& pair, const std::string& file) {
  if (!pair.value.IsScalar()) throw Error(file, pair.line, "'" + pair.key + "' must be a text");
  return pair.value.Scalar();
}

/// common_options and base_args, as ds_verify_loss's batch_conditions.yaml has them; base_args may hold the others.
Shared shared_of(const std::vector<Pair>& parts, const std::string& file) {
  Shared shared;
  for (const Pair& part : parts) {
    if (part.key != "common_options") continue;
    for (const Pair& option : pairs(part.value, file, "common_options")) shared[option.key] = text_of(option, file);
  }
  for (const Pair& part : parts) {
    if (part.key == "base_args") shared["base_args"] = filled(text_of(part, file), shared, file, part.line);
  }
  return shared;
}

/// The options of a condition that is a mapping of "args", a text, and perhaps "description"; nothing for another one.
std::optional<std::string> args_of(const YAML::Node& condition, const std::string& file, const Shared& shared) {
  std::optional<std::string> args;
  if (!condition.IsMap()) return args;
  for (const Pair& part : pairs(condition, file, "options")) {
    if (part.key == "args" && part.value.IsScalar())
      args = filled(part.value.Scalar(), shared, file, part.line);
    else if (part.key != "description")
      return {};
  }
  return args;
}

Condition condition_of(const Pair& pair, const std::string& file, const Shared& shared) {
  if (!names_file(pair.key)) throw Error(file, pair.line, cannot_name(pair.key, "condition"));
  Condition condition{pair.key, ""};
  const std::optional<std::string> args = args_of(pair.value, file, shared);
  if (args || pair.value.IsScalar()) {
    condition.options = args ? *args : filled(pair.value.Scalar(), shared, file, pair.line);
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

ConditionSet set_of(const Pair& pair, const std::string& file, const Shared& shared) {
  ConditionSet set{pair.key, "", {}};
  for (const Pair& part : pairs(pair.value, file, "set '" + pair.key + "'")) {
    if (part.key == "description" && part.value.IsScalar()) {
      set.description = part.value.Scalar();
    } else if (part.key == "run" && part.value.IsScalar()) {
      set.run = part.value.Scalar();
    } else if (part.key == "resume" && part.value.IsScalar()) {
      set.resume = part.value.Scalar();
    } else if (part.key == "conditions") {
      for (const Pair& condition : pairs(part.value, file, "the conditions of '" + pair.key + "'"))
        set.conditions.push_back(condition_of(condition, file, shared));
    } else {
      throw Error(
          file, part.line,
          "'" + part.key + "' in set '" + pair.key + "': expected description, run and resume (texts) and conditions");
    }
  }
  if (set.conditions.empty()) throw Error(file, pair.line, "set '" + pair.key + "' has no conditions");
  return set;
}

}  // namespace

std::vector<ConditionSet> parse_conditions(std::string_view yaml, const std::string& name) {
  std::vector<ConditionSet> sets;
  const std::vector<Pair> parts = pairs(document(yaml, name), name, "a file of conditions");
  const Shared shared = shared_of(parts, name);
  std::string run, resume;
  for (const Pair& part : parts) {
    if (part.key == "run") run = text_of(part, name);
    if (part.key == "resume") resume = text_of(part, name);
  }
  for (const Pair& part : parts) {
    // The first is a place for anchors.
    if (part.key == "options" || part.key == "common_options" || part.key == "base_args" || part.key == "run" ||
        part.key == "resume")
      continue;
    if (part.key != "sets" && part.key != "condition_sets")
      throw Error(name, part.line, "unknown key '" + part.key + "', expected options, run, resume and sets");
    for (const Pair& set : pairs(part.value, name, part.key)) sets.push_back(set_of(set, name, shared));
  }
  for (ConditionSet& set : sets) {
    if (set.run.empty()) set.run = run;
    if (set.resume.empty()) set.resume = resume;
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
  for (const ConditionSet& set : sets) {
    if (set.name == name) return set;
    names.push_back(set.name);
  }
  const std::string hint = did_you_mean(name, names);
  throw Error(file, 0, "no set '" + name + "'" + (hint.empty() ? ": there are " + joined(names) : hint));
}

}  // namespace zs::config
