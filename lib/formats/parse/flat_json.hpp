// SPDX-License-Identifier: Apache-2.0
// Reads a JSON object as the fields of a record.
#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "parse/dialect.hpp"

namespace zs::parse {

/// Reads an object on one line, flattened: nested objects become dotted keys. Accepts NaN and Infinity, as Python
/// writes them, and keeps the digits of numbers: no JSON library does both.
class FlatJson {
 public:
  /// Reads the object at the start of `text`. Null and arrays are skipped. False, with the reason in fault(), if it is
  /// malformed; the fields read so far stay.
  bool read(std::string_view text);
  /// The same with arrays: the third element of "a" is "a[2]". A text that is an array is "[0]", "[1]", ...
  bool read_all(std::string_view text);
  /// What follows the object.
  std::string_view rest() const { return rest_; }
  /// Views into the text, or into this reader.
  const std::vector<Field>& fields() const { return fields_; }
  const std::string& fault() const { return fault_; }

 private:
  bool begin(std::string_view text);
  bool object(const std::string& prefix, int depth);
  bool value(std::string_view key, int depth);
  bool text(std::string_view& out);
  bool array(std::string_view key, int depth);
  Token take_json_number();
  bool fail(const std::string& what);

  std::string_view all_, rest_;
  bool arrays_ = false;
  std::vector<Field> fields_;
  std::deque<std::string> made_;
  std::string fault_;
};

}  // namespace zs::parse
