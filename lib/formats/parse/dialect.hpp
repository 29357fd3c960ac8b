// SPDX-License-Identifier: Apache-2.0
// A dialect is one way to write metrics, or facts about a run, into a log line. Each has its own source file; the table
// in dialects.cpp lists them.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "parse/text.hpp"

namespace zs::parse {

/// One line of a log, without its end and terminal escapes. A carriage return ends a line too, but is not counted as
/// one.
struct Line {
  std::string_view text;
  std::int64_t number = 0;  ///< from 1
  bool ended = true;        ///< false: the input ends here, so the last value may be truncated
  bool below = false;       ///< it moves the cursor up, as tqdm does behind a bar that is drawn below another one
};

/// A name and its value as in the log. Both are valid as long as the line.
struct Field {
  std::string_view key, value;
  Kind kind = Kind::word;
};

/// Receives what a dialect finds in a line.
class Emitter {
 public:
  virtual ~Emitter() = default;
  /// One record, from the line numbered `line`. `prefix` is
  /// the text before it, which may contain a launcher's rank.
  virtual void record(const std::vector<Field>& fields, std::string_view prefix, std::int64_t line) = 0;
  /// A fact about the run; the first value for a key wins, unless `replace`.
  virtual void attribute(std::string_view key, std::string_view value, bool replace = false) = 0;
  /// A defect at a line other than the current one.
  virtual void fault(std::int64_t line, const std::string& what) = 0;
};

struct Verdict {
  bool matched = false;  ///< the line has this dialect, and something was found in it
  std::string fault{};   ///< not empty: the line looks like this dialect, but this part of it is unreadable
};

/// Reads one log; may keep state between lines.
class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual Verdict read(const Line& line, Emitter& emitter) = 0;
  /// True while it needs every line, not only those with a marker. (All dialects get the first lines of a log, for
  /// headers.)
  virtual bool wants_all() const { return false; }
  /// True while it holds back a record to which later lines may add.
  virtual bool holds() const { return false; }
  /// Another dialect has a record of `step`, by `rank` ("" if unknown). Returns the fields that it holds back for that
  /// step, which then join that record; emits a record held back for any other step. Valid until the next call.
  virtual std::vector<Field> give(std::string_view /*step*/, std::string_view /*rank*/, Emitter&) { return {}; }
  /// True if its records supplement records of the program's own lines, so that both occur in one log.
  virtual bool companion() const { return false; }
  /// True if it guesses lines of any program by their look: it is used only if no other dialect reads the log, except
  /// companions.
  virtual bool last_resort() const { return false; }
  /// For a last resort that has read something: which columns, in words.
  virtual std::string reading() const { return ""; }
  /// At the end of the log: emits the record held back, and faults for unfinished ones.
  virtual void finish(Emitter&) {}
};

/// A row of the table of dialects.
struct Entry {
  std::string_view name;
  std::string_view writer;                ///< the programs that write such lines, for people
  std::string_view example;               ///< one real line
  std::vector<std::string_view> markers;  ///< each line of the dialect contains at least one of these
  std::unique_ptr<Dialect> (*make)();
};

/// The table, in the order in which dialects are tried.
const std::vector<Entry>& dialects();
std::vector<std::string> dialect_names();
/// The entry with that name; throws UsageError naming the nearest.
const Entry& dialect_named(std::string_view name);

/// The cells of a row of a table; one in double quotes may have separators and line ends in it, and two quotes for one,
/// which `made` then holds. Empty if a quote is not closed.
std::vector<std::string_view> cells_of(std::string_view text, char separator, std::deque<std::string>& made);

/// A dialect from a user's regular expression (RE2 syntax; groups (?P<key>...)
/// or (?<key>...)): every match in a line is a record. Throws UsageError if
/// the expression is invalid or has no named group; messages call it `what`.
std::unique_ptr<Dialect> make_pattern(const std::string& pattern, const std::string& what = "--pattern");

std::unique_ptr<Dialect> make_reference();
std::unique_ptr<Dialect> make_zs();
std::unique_ptr<Dialect> make_launch();
std::unique_ptr<Dialect> make_failure();
std::unique_ptr<Dialect> make_wandb();
std::unique_ptr<Dialect> make_csv();
std::unique_ptr<Dialect> make_json();
std::unique_ptr<Dialect> make_mllog();
std::unique_ptr<Dialect> make_paragraph();
/// A dialect that is rows of the table in forms.cpp.
std::unique_ptr<Dialect> make_forms(std::string_view dialect);
std::unique_ptr<Dialect> make_deepspeed();
std::unique_ptr<Dialect> make_huggingface();
std::unique_ptr<Dialect> make_lightning();
std::unique_ptr<Dialect> make_general();

}  // namespace zs::parse
