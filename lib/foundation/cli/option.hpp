// SPDX-License-Identifier: Apache-2.0
// The table of a command line: the options of a tool, and what it is for.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

namespace zs::cli {

/// One row of the table. On the command line '_' and '-' in names are equivalent: --sort_by, --sort-by.
struct Option {
  char letter = 0;                     ///< short form, or 0
  std::string name;                    ///< long form, without dashes, words joined by '_'
  std::string value;                   ///< placeholder of its value, "FILE"; empty for a flag
  std::string help;                    ///< lower case, no period
  std::string fallback{};              ///< default, printed in [brackets]; empty for none
  std::vector<std::string> choices{};  ///< the only values allowed, if any
  bool many = false;                   ///< may be given several times, with several values each time
  std::string group{};                 ///< heading in --help; rows of one group are adjacent
  bool writes = false;                 ///< its value is a file or folder that the tool writes: never one of its inputs
  std::vector<std::string> meant{};    ///< what other programs call it, "lr": not accepted; the error suggests this
  std::string alone{};                 ///< the value of an option typed without one; empty: it needs one
  std::vector<std::string> forms{};    ///< of --output: the forms of the file, if not the choices of --format
};

struct Command {
  std::string name;      ///< "zs-parse"
  std::string purpose;   ///< one sentence: upper case first, no period
  std::string operands;  ///< as in a synopsis: "[LOG]...", or empty if it takes none
  std::vector<Option> options;
  std::map<int, std::string> statuses{};  ///< what the exit statuses mean, if different from the usual
  std::vector<std::string> examples{};    ///< command lines: shown last in --help, and under EXAMPLES of the page
  std::set<std::string> brief{};          ///< groups that --help shows; --help all shows all; empty: all
};

}  // namespace zs::cli
