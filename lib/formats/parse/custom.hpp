// SPDX-License-Identifier: Apache-2.0
// The user's pattern file, which describes logs of other trainers to every tool that reads logs.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace zs::parse {

struct Custom {
  std::vector<std::string> patterns;       ///< as Options::pattern, tried in order
  std::map<std::string, std::string> map;  ///< as Options::map
  std::function<void(const std::string&)>
      note;  ///< gets a message about what a last resort has read, once for similar logs; may be empty
};

/// The current customisation: every new LogReader uses it.
const Custom& custom();

/// Reads the pattern file `file`; without one, $XDG_CONFIG_HOME/zs/patterns
/// (~/.config/zs/patterns), if it exists. Each line is a regular expression with named groups,
/// or "map COLUMN=KEY[,COLUMN=KEY]"; empty lines and lines that begin with '#' are ignored.
/// Throws Error, with path and line, at anything else. REQUIRES: no other thread reads a log.
void customize(const std::string& file, std::function<void(const std::string&)> note = {});

/// Adds a pattern for the lines of `log`, which no dialect reads, to the pattern file `file` (as in customize(); it is
/// made if it is missing). Returns the file and the pattern. Throws Error if the log is read already, or if no pattern
/// gives a step and a loss on each of its likely lines.
std::pair<std::string, std::string> learn(const std::string& log, const std::string& file);

}  // namespace zs::parse
