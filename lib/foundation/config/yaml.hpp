// SPDX-License-Identifier: Apache-2.0
// YAML documents with locations: errors carry file, line and column; merge keys and aliases are resolved. Only sources
// of lib/foundation/config include this header.
#pragma once
#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"

namespace zs::config {

/// The only document in `bytes`. Throws Error at "name:line:column: ..." if it is not YAML, is empty, has several
/// documents, is nested too deeply or its aliases expand to too many values. The result can be walked as if it had no
/// aliases.
YAML::Node document(std::string_view bytes, const std::string& name);

/// One key of a mapping. `line` counts from 1.
struct Pair {
  std::string key;
  std::int64_t line = 0;
  YAML::Node value;
};

/// The keys of `map` in order; keys merged by `<<` come first. Throws Error if `map` is not a mapping (`what` names it
/// in the message), if a key is given twice, and if a key is not a plain word or text.
std::vector<Pair> pairs(const YAML::Node& map, const std::string& name, std::string_view what);

/// The line of a node, from 1; 0 if the parser kept none.
std::int64_t line_of(const YAML::Node& node);

/// True for a scalar in quotes (or a block): a text, whatever its form.
bool quoted(const YAML::Node& scalar);

/// `text` as a YAML scalar on one line: plain if that reads back as the same plain scalar, else in quotes. `keep_text`
/// also quotes what would read back as null, a number or a truth value.
std::string scalar_text(const std::string& text, bool keep_text);

/// A list or mapping as YAML on one line: "[0.9, 0.95]".
std::string flow_text(const YAML::Node& node);

/// The value of a key, of the kind that it has in YAML.
Entry entry_of_node(const std::string& key, const std::string& origin, const YAML::Node& node);

}  // namespace zs::config
