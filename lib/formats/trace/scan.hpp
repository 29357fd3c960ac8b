// SPDX-License-Identifier: Apache-2.0
// Steps through the JSON of a trace without a tree: a trace of gigabytes is read piece by piece.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/file.hpp"

namespace zs::trace {

/// The text of a trace, of which the part from place() on is in memory as far as it was asked for.
class Text {
 public:
  /// A compressed file that is cut is reported to `faults`; what could be read counts.
  Text(const std::string& path, const FaultSink& faults) : input_(path), faults_(faults) {}

  /// The character at `ahead` of the place; 0 at the end.
  char peek(std::size_t ahead = 0) { return has(ahead) ? buffer_[at_ + ahead] : '\0'; }
  /// Whether there is a character `ahead` of the place. Reads on if necessary.
  bool has(std::size_t ahead);
  void skip(std::size_t count) { at_ += count; }
  void skip_blanks();
  /// Skips the value at the place and returns it: an object, a list, a text, or a bare word. Empty if the file ends in
  /// it. Throws Error if a value is too long.
  std::string_view value();
  /// Bytes in front of it.
  std::int64_t place() const { return passed_ + static_cast<std::int64_t>(at_); }

 private:
  void more();

  Input input_;
  const FaultSink& faults_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::int64_t passed_ = 0;
  bool ended_ = false;
};

/// The fields of an object, one after another.
class Fields {
 public:
  /// Throws Error if it is not an object.
  explicit Fields(std::string_view object);
  /// The next key and value, unparsed; false at the end. Throws Error.
  bool next(std::string_view& key, std::string_view& value);

 private:
  void blanks();
  void take(char c);
  std::string_view cut(std::size_t size);
  std::string_view text();
  std::string_view any();

  std::string_view rest_;
};

}  // namespace zs::trace
