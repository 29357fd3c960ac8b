// SPDX-License-Identifier: Apache-2.0
// A dialect is one way of writing metrics, or facts about a run, into a log line. Each has a source file of its own;
// the table in dialects.cpp lists them.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "parse/text.hpp"

namespace zs::parse {

/// One line of a log, without its end and without terminal escapes. A carriage return ends a line too, but does not
/// count one.
struct Line {
  std::string_view text;
  std::int64_t number = 0;  ///< from 1
  bool ended = true;        ///< false: the input ends here, so the last value may be cut
};

/// A name as the log spells it and its value. Both live as long as the line.
struct Field {
  std::string_view key, value;
  Kind kind = Kind::word;
};

/// Where a dialect puts what it finds in a line.
class Emitter {
 public:
  virtual ~Emitter() = default;
  /// One record, of the line numbered `line`. `prefix` is what stands before it: a launcher may have put the rank
  /// there.
  virtual void record(const std::vector<Field>& fields, std::string_view prefix, std::int64_t line) = 0;
  /// A fact about the run; the first one given for a key holds, unless `replace`.
  virtual void attribute(std::string_view key, std::string_view value, bool replace = false) = 0;
  /// A defect at another line than the one being read.
  virtual void fault(std::int64_t line, const std::string& what) = 0;
};

struct Verdict {
  bool matched = false;  ///< the line is of this dialect, and something was found in it
  std::string fault{};   ///< not empty: the line looks like this dialect, and this part of it cannot be read
};

/// One reader of a dialect, for one log: it may keep what it needs from line to line.
class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual Verdict read(const Line& line, Emitter& emitter) = 0;
  /// True while every line must be shown to it, not only those with a marker. (The first lines of a log are shown to
  /// all: headers stand there.)
  virtual bool wants_all() const { return false; }
  /// True while it holds back a record, to which later lines may add.
  virtual bool holds() const { return false; }
  /// Another dialect has a record of `step`, by `rank` ("" if unknown). Gives what it holds of the same step, which
  /// then is part of that record; hands on what it holds of another. The fields live until the next call.
  virtual std::vector<Field> give(std::string_view /*step*/, std::string_view /*rank*/, Emitter&) { return {}; }
  /// True if its records add to those of the program's own lines, so that a log with some may have others.
  virtual bool companion() const { return false; }
  /// True if it reads lines of any writer by what they look like: it is asked only where no other dialect reads the
  /// log, companions apart.
  virtual bool last_resort() const { return false; }
  /// Of a last resort that has read something: which columns, in words.
  virtual std::string reading() const { return ""; }
  /// At the end of the log: hands on what it holds; faults about what was left open.
  virtual void finish(Emitter&) {}
};

/// A row of the table of dialects.
struct Entry {
  std::string_view name;
  std::string_view writer;                ///< who writes such lines, for people
  std::string_view example;               ///< one real line
  std::vector<std::string_view> markers;  ///< each line of the dialect has at least one of these in it
  std::unique_ptr<Dialect> (*make)();
};

/// The table, in the order in which dialects are tried.
const std::vector<Entry>& dialects();
std::vector<std::string> dialect_names();
/// The entry of that name; throws UsageError naming the nearest.
const Entry& dialect_named(std::string_view name);

/// The dialect that a user describes: a reader of every line that has a match (RE2 syntax; groups (?P<key>...) or
/// (?<key>...)); each match is a record. Throws UsageError where the expression is wrong or has no named group; `what`
/// is what messages call it.
std::unique_ptr<Dialect> make_pattern(const std::string& pattern, const std::string& what = "--pattern");

std::unique_ptr<Dialect> make_reference();
std::unique_ptr<Dialect> make_zs();
std::unique_ptr<Dialect> make_launch();
std::unique_ptr<Dialect> make_failure();
std::unique_ptr<Dialect> make_wandb();
std::unique_ptr<Dialect> make_csv();
std::unique_ptr<Dialect> make_json();
std::unique_ptr<Dialect> make_deepspeed();
std::unique_ptr<Dialect> make_nanogpt();
std::unique_ptr<Dialect> make_huggingface();
std::unique_ptr<Dialect> make_torchtitan();
std::unique_ptr<Dialect> make_llmc();
std::unique_ptr<Dialect> make_megatron();
std::unique_ptr<Dialect> make_lightning();
std::unique_ptr<Dialect> make_verl();
std::unique_ptr<Dialect> make_general();

}  // namespace zs::parse
