// SPDX-License-Identifier: Apache-2.0
// What a user says of the logs of their own trainers, for every log that a program reads: a file of patterns.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace zs::parse {

struct Custom {
  std::vector<std::string> patterns;       ///< as Options::pattern, tried in this order
  std::map<std::string, std::string> map;  ///< as Options::map
  std::function<void(const std::string&)>
      note;  ///< is told what a last resort has read, once for logs alike; may be empty
};

/// What holds for every LogReader that is made from now on.
const Custom& custom();

/// Reads the pattern file `file`; without one, $XDG_CONFIG_HOME/zs/patterns (~/.config/zs/patterns), if it exists. Each
/// line is a regular expression with named groups, or "map COLUMN=KEY[,COLUMN=KEY]"; empty lines and those that begin
/// with '#' say nothing. Throws Error, with path and line, at anything else.
/// REQUIRES: no other thread reads a log.
void customize(const std::string& file, std::function<void(const std::string&)> note = {});

}  // namespace zs::parse
