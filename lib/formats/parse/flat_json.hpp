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
  /// Views into the text, or into this reader.
  const std::vector<Field>& fields() const { return fields_; }
  const std::string& fault() const { return fault_; }

 private:
  bool object(const std::string& prefix, int depth);
  bool value(std::string_view key, int depth);
  bool text(std::string_view& out);
  bool skip_array(int depth);
  Token take_json_number();
  bool fail(const std::string& what);

  std::string_view all_, rest_;
  std::vector<Field> fields_;
  std::deque<std::string> made_;
  std::string fault_;
};

}  // namespace zs::parse
