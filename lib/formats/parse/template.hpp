// SPDX-License-Identifier: Apache-2.0
// Most metric lines of a log differ in their numbers only. Once a dialect has read one, the text between the values is
// known, and the next line of the same form is read at a twelfth of the cost, with the same result.
//
//   learned   "iter 100: loss 2.1234, time 135.12ms"  ->  text "iter ", number, text ": loss ", number, text ", time ",
//   ... matched   "iter 110: loss 2.0967, time 134.87ms"      each text compared, each number found by a mask of its
//   digits
//
// What must hold: a line that matches has the cells that the dialect would have found. So a match is refused wherever
// that is not certain - other text, a number of another kind or of an unusual form, a longer one, nan - and the dialect
// reads the line. Which columns are whole numbers was learned, and a fraction or a sign there is refused, and a rank
// that is longer than ranks are. Dialects that look at more than one line say so (Dialect::repeats), and nothing is
// learned of them.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "metric/table.hpp"
#include "parse/dialect.hpp"

namespace zs::parse {

class Template {
 public:
  /// Bytes that may be looked at behind the text of a match().
  static constexpr std::size_t kSlack = 64;
  /// No number is longer.
  static constexpr std::size_t kLongest = 32;

  /// A value of a line, and the cell that it becomes.
  struct Value {
    Field field;
    std::size_t column;
    metric::Type type;
  };
  /// Learns the form of `line`. False, and nothing is learned, where it has values that are not numbers in the line.
  /// `json`: only numbers as in JSON are of this form.
  bool learn(std::string_view line, std::vector<Value> values, bool json = false);
  bool learned() const { return !slots_.empty(); }
  void forget() { slots_.clear(); }

  /// If the line at `at` has this form, sets its cells and gives the place of its '\n'; else nullptr.
  /// REQUIRES: [at, end) ends with '\n', and kSlack bytes behind `end` may be read.
  const char* match(const char* at, const char* end, std::vector<std::string_view>& cells);

 private:
  /// Text, then a value.
  struct Slot {
    std::string text;
    alignas(16) std::array<char, 16> start{};  ///< of the text
    std::uint32_t start_bits = 0;              ///< a bit for each byte of it
    std::size_t column = 0;
    bool whole = false;                ///< an integer column
    std::uint32_t longest = kLongest;  ///< characters of its number
    bool truth = false;                ///< True or False
    /// The extent of the last number: guessing it again lets the processor read ahead, past a load, a compare and a
    /// count for each value.
    std::uint32_t window = 0, digits = 1;  ///< bits of the bytes up to its end; those that are digits
    std::uint32_t length = 0, point = 0;
    bool narrow = false;  ///< the window has at most 16 bits
    bool guess = false;   ///< the text behind cannot be part of a number
    void set_text(std::string_view t);
    bool starts(const char* at, const char* end) const;
    const char* end_of_number(const char* at, bool json);
  };
  bool json_ = false;
  std::vector<Slot> slots_;
  Slot tail_;
};

}  // namespace zs::parse
