// SPDX-License-Identifier: Apache-2.0
// An experiment configuration: dotted keys in order, each with its value as text and the place it came from.
// Known keys (known.hpp) are typed and checked; any further key is kept as it is.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace zs::config {

enum class Kind {
  plain,   ///< a bare scalar: number, truth value or text
  quoted,  ///< a text, whatever it looks like
  list,    ///< a list, or an empty or listed mapping: its YAML on one line
  null,    ///< no value: as if the key were not set
};

/// Whose word a value is.
enum class From {
  user,    ///< of a file, an option or --set: it must have an effect (reading.hpp)
  stored,  ///< the resumed run had it in its configuration
  zs,      ///< a default, or what follows from other values
};

struct Entry {
  std::string key;     ///< "training.batch_size"; an alias is replaced by the key it stands for
  std::string value;   ///< "" for null
  std::string origin;  ///< "train.yaml:12", "--batch_size", "--set", "default"
  Kind kind = Kind::plain;
  From from = From::user;
};

class Config {
 public:
  /// Reads YAML from a file, or stdin for "-". Sections nest to any depth; "a.b: 1" is the same as "a: {b: 1}".
  /// Throws Error with line and column at what is not YAML, with the line at a key given twice.
  static Config read(const std::string& path);
  /// As read(), of `yaml`, which messages call `name`.
  static Config parse(std::string_view yaml, const std::string& name);

  /// Sets a key, or replaces its value in place. `value` is read as a YAML value: "null" unsets, "[1, 2]" is a list.
  /// Throws Error where `key` is malformed, or a section and a value at once.
  void set(const std::string& key, const std::string& value, const std::string& origin);
  void set(Entry entry);
  /// As set(), of a value that zs chooses: "default".
  void choose(const std::string& key, const std::string& value);
  /// Marks every value as stored: a resumed run had it.
  void mark_stored();
  /// Adds the known keys that have a default and are not set, from "default".
  void add_defaults();
  /// Checks every known key that is set: throws Error, located, at the first that is not of its type, range or choices.
  void check() const;

  const std::vector<Entry>& entries() const { return entries_; }
  /// The entry of a key, or of what the key is an alias of; nothing where it is absent or null.
  const Entry* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }

  /// The value, else the known default. Throw Error, located, where the value is not of the type asked for or not
  /// within the known range, and where there is neither value nor default (text: "" then).
  std::string text(std::string_view key) const;
  std::int64_t integer(std::string_view key) const;  ///< also of a count: "10M"
  double real(std::string_view key) const;           ///< finite
  bool boolean(std::string_view key) const;
  std::vector<std::string> list(std::string_view key) const;  ///< of "a,b" or a YAML list; empty where not set

  /// What looks like a setting and is read by nothing: "train.yaml:3: nothing reads 'training.batchsize', did you ...",
  /// behind what warn() added.
  std::vector<std::string> warnings() const;
  void warn(std::string what) { warnings_.push_back(std::move(what)); }

  /// The whole as YAML, sections nested, with the origin of each value as a comment. parse() of it gives the same keys,
  /// values and kinds.
  std::string to_yaml() const;

 private:
  std::vector<Entry> entries_;
  std::vector<std::string> warnings_;
  std::unordered_map<std::string, std::size_t> places_;    ///< of each key
  std::unordered_map<std::string, std::size_t> sections_;  ///< of a key in each section
};

/// "nothing reads 'training.lr', did you mean 'training.learning_rate'?" where `key` looks like a setting of zs and is
/// none: it stands in a section of zs, or has a name like one. "" for what zs reads, and for a key of the user's own.
std::string unread(std::string_view key);

/// `text` as a value: the kind it has where it stands alone in YAML. Throws Error at "origin: ..." where it is not
/// YAML.
Entry entry_of(const std::string& key, const std::string& text, const std::string& origin);

}  // namespace zs::config
