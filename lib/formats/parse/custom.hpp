// SPDX-License-Identifier: Apache-2.0
// The user's pattern file, which describes logs of other trainers to every tool that reads logs.
#pragma once
#include <functional>
#include <map>
#include <string>
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

}  // namespace zs::parse
