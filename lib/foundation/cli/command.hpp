// SPDX-License-Identifier: Apache-2.0
// A tool's command line as one table, which parses and prints --help, the man page and the completion, so that these
// always agree.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/words.hpp"
#include "cli/option.hpp"

namespace zs::cli {

/// The command line, checked against the table.
class Args {
 public:
  /// Throws UsageError at an unknown option (naming the nearest), a missing value, a value not among the choices, and
  /// an empty value or operand, which an unset shell variable leaves.
  static Args parse(const Command& command, const std::vector<std::string>& words);

  /// True if the option was typed (a default does not count).
  bool has(const std::string& name) const;
  /// The value typed, else the default, else "".
  std::string text(const std::string& name) const;
  /// All values of a repeatable option.
  std::vector<std::string> all(const std::string& name) const;
  /// The options as typed, in order, each with its last value ("" for a flag). A repeated option is repeated here.
  const std::vector<std::pair<std::string, std::string>>& typed() const { return typed_; }
  /// A number within [lowest, highest]; throws UsageError naming the option otherwise.
  std::int64_t integer(const std::string& name, std::int64_t lowest, std::int64_t highest = INT64_MAX) const;
  /// A finite number within [lowest, highest]; NaN is never within.
  double real(const std::string& name, double lowest, double highest) const;

  const std::vector<std::string>& operands() const { return operands_; }
  /// The operands after "--": the command line of another program.
  const std::vector<std::string>& behind() const { return behind_; }
  /// The operands as inputs: {"-"} (stdin) if there are none. Throws UsageError if stdin is a terminal then.
  std::vector<std::string> inputs() const;
  /// The only operand. Throws UsageError if there are none or several, with `what` as the expected one.
  std::string operand(const std::string& what) const;
  /// Like inputs(), for tools that take exactly one.
  std::string input() const;

  /// The options that were typed but not read by name: they have no effect.
  std::vector<std::string> unasked() const;
  /// Like text(), but "" if the tool has no such option, and not counted as read: outputs are claimed before it is
  /// known whether the tool writes them.
  std::string peek(const std::string& name) const;
  /// Marks an option as read that was read through typed().
  void mark_asked(const std::string& name) const { asked_.insert(name); }

  /// The table that was parsed against.
  const Command& command() const { return *command_; }
  /// The command line as typed, quoted for a shell: recorded in the run.
  const std::string& line() const { return line_; }

 private:
  const Command* command_ = nullptr;
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::pair<std::string, std::string>> typed_;
  std::vector<std::string> operands_, behind_;
  mutable std::set<std::string> asked_;
  std::string line_;
};

using zs::shell_quoted;

/// The --help text; `whole`: of all groups, or only of the brief ones.
std::string help_text(const Command& command, bool whole = true);

/// The mdoc(7) man page: NAME, SYNOPSIS, OPTIONS and EXIT STATUS from the table, the rest from `prose`. The first line
/// of `prose` is the .Dd date. The text up to the first .Ss or .Sh is the DESCRIPTION. Its subsections become DETAILS.
/// EXAMPLES follow OPTIONS.
std::string man_page(const Command& command, const std::string& prose);

/// A bash completion for the command.
std::string completion(const Command& command);

}  // namespace zs::cli
