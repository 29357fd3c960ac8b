// SPDX-License-Identifier: Apache-2.0
// An object of JSON as the fields of a record.
#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "parse/dialect.hpp"

namespace zs::parse {

/// An object on one line, read flat: nested objects become dotted keys. NaN and Infinity are values, as Python writes
/// them, and numbers keep their digits: no JSON library does both.
class FlatJson {
 public:
  /// Reads the object that `text` starts with. Null and arrays are left out. False, with fault() saying why, if it
  /// is none; the fields read so far stay.
  bool read(std::string_view text);
  /// Views of the text, or of this reader.
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
