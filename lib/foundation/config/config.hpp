// SPDX-License-Identifier: Apache-2.0
// A training's configuration: dotted keys in order, each with its value as text and its origin. Known keys (known.hpp)
// are typed and checked; other keys are kept unchanged.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace zs::config {

enum class Kind {
  plain,   ///< an unquoted scalar: number, truth value or text
  quoted,  ///< a text, whatever its form
  list,    ///< a list, or an empty or listed mapping: its YAML on one line
  null,    ///< no value: the key counts as not set
};

/// Who set a value.
enum class From {
  user,    ///< the user, by a file, an option or --set: it must have an effect (reading.hpp)
  stored,  ///< the resumed run, in its stored configuration
  zs,      ///< zs: a default, or derived from other values
};

struct Entry {
  std::string key;     ///< "training.batch_size"; an alias is replaced by its key
  std::string value;   ///< "" for null
  std::string origin;  ///< "train.yaml:12", "--batch_size", "--set", "default"
  Kind kind = Kind::plain;
  From from = From::user;
};

class Config {
 public:
  /// Reads YAML from a file, or stdin for "-". Sections nest to any depth; "a.b: 1" is the same as "a: {b: 1}". Throws
  /// Error with line and column at invalid YAML, with the line at a duplicate key.
  static Config read(const std::string& path);
  /// Like read(), from the text `yaml`, which messages call `name`.
  static Config parse(std::string_view yaml, const std::string& name);

  /// Sets a key, or replaces its value in place. `value` is parsed as YAML: "null" unsets, "[1, 2]" is a list. Throws
  /// Error if `key` is malformed, or would be both a section and a value.
  void set(const std::string& key, const std::string& value, const std::string& origin);
  void set(Entry entry);
  /// Like set(), for a value that zs chooses: "default".
  void choose(const std::string& key, const std::string& value);
  /// Marks every value as stored: it comes from the resumed run.
  void mark_stored();
  /// Adds the defaults of known keys that are not set, with the origin "default".
  void add_defaults();
  /// Checks every known key that is set: throws Error, located, at the first with a wrong type, range or choice.
  void check() const;

  const std::vector<Entry>& entries() const { return entries_; }
  /// The entry of a key, or of the key that it is an alias of; null if absent or null.
  const Entry* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }

  /// The value, else the known default. Throw Error, located, if the value is not of the requested type or not within
  /// the known range, and if there is neither value nor default (text: "" then).
  std::string text(std::string_view key) const;
  std::int64_t integer(std::string_view key) const;  ///< accepts counts too: "10M"
  double real(std::string_view key) const;           ///< finite
  bool boolean(std::string_view key) const;
  std::vector<std::string> list(std::string_view key) const;  ///< from "a,b" or a YAML list; empty if not set

  /// The messages of warn(), and one for each unknown key that looks like a setting: "train.yaml:3: nothing reads
  /// 'epochs', did you ...". Throws Error if one is in a section of zs: "train.yaml:3: nothing reads
  /// 'training.batchsize'".
  std::vector<std::string> warnings() const;
  void warn(std::string what) { warnings_.push_back(std::move(what)); }

  /// The whole as YAML with nested sections and the origin of each value as a comment. parse() of it returns the same
  /// keys, values and kinds.
  std::string to_yaml() const;

 private:
  std::vector<Entry> entries_;
  std::vector<std::string> warnings_;
  std::unordered_map<std::string, std::size_t> places_;    ///< index of each key
  std::unordered_map<std::string, std::size_t> sections_;  ///< index of a key in each section
};

/// "nothing reads 'training.lr', did you mean 'training.learning_rate'?" if `key` is unknown but looks like a setting
/// of zs: it is in a section of zs, or has a similar name. "" for known keys and for the user's private keys.
std::string unread(std::string_view key);

/// `text` as a value, of the kind that YAML gives it. Throws
/// Error, which begins with `origin`, if it is not YAML.
Entry entry_of(const std::string& key, const std::string& text, const std::string& origin);

}  // namespace zs::config
