// SPDX-License-Identifier: Apache-2.0
// YAML documents with places: errors carry file, line and column; merge keys and aliases are resolved.
// Only sources of lib/foundation/config include this header.
#pragma once
#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zs::config {

/// The only document in `bytes`. Throws Error at "name:line:column: ..." where it is not YAML, where it is empty, or
/// several documents, and where it is nested too deeply or its aliases stand for too many values: what it returns can
/// be walked as if nothing were aliased.
YAML::Node document(std::string_view bytes, const std::string& name);

/// One key of a mapping. `line` counts from 1.
struct Pair {
  std::string key;
  std::int64_t line = 0;
  YAML::Node value;
};

/// The keys of `map` in order; those that `<<` merges in come first. Throws Error where `map` is not a mapping (`what`
/// names it in the message), where a key is given twice, and where a key is not a plain word or text.
std::vector<Pair> pairs(const YAML::Node& map, const std::string& name, std::string_view what);

/// The line of a node, from 1; 0 where the parser kept none.
std::int64_t line_of(const YAML::Node& node);

/// True for a scalar that was written in quotes (or as a block): a text, whatever it looks like.
bool quoted(const YAML::Node& scalar);

/// `text` as a YAML scalar on one line: as it is where that reads back as the same plain scalar, else in quotes.
/// `keep_text` quotes also what would read back as null, a number or a truth value.
std::string scalar_text(const std::string& text, bool keep_text);

/// A list or mapping as YAML on one line: "[0.9, 0.95]".
std::string flow_text(const YAML::Node& node);

}  // namespace zs::config
