// SPDX-License-Identifier: Apache-2.0
// Scanners for the text of a line: numbers, words, blanks. None copies, none throws.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace zs::parse {

enum class Kind : std::uint8_t { integer, real, word };

struct Token {
  std::string_view text;  ///< empty: none
  Kind kind = Kind::word;
};

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
inline bool is_alpha(char c) { return static_cast<unsigned char>((c | 32) - 'a') < 26; }
inline bool is_blank(char c) { return c == ' ' || c == '\t'; }
/// Characters of a metric's key: letters, digits and "_./-".
inline bool is_key(char c) { return is_alpha(c) || is_digit(c) || c == '_' || c == '.' || c == '/' || c == '-'; }

/// The number at the start of `text`: sign, digits, point, exponent; or nan, inf, infinity in any case.
Token number_at(std::string_view text);
/// `text` as a number if all of it is one, else as a word.
Token value_of(std::string_view text);

std::string_view trimmed(std::string_view text);
/// Removes `head` from the front of `text`; false, with `text` unchanged, if it does not start with it.
inline bool skip(std::string_view& text, std::string_view head) {
  if (!text.starts_with(head)) return false;
  text.remove_prefix(head.size());
  return true;
}
/// Removes and returns the characters in front of which `is` is true.
template <typename Is>
std::string_view take_while(std::string_view& text, const Is& is) {
  std::size_t length = 0;
  while (length < text.size() && is(text[length])) ++length;
  const std::string_view taken = text.substr(0, length);
  text.remove_prefix(length);
  return taken;
}
inline void skip_blanks(std::string_view& text) { take_while(text, is_blank); }
/// Whether a number may end before `rest`: nothing, a blank, or a comma and one of these follow. Anything else may be
/// part of it, as in "3,25", "3.25.1", "3.25_7", "3.25e", "3;25" or "1 234", where the intended number is ambiguous.
bool number_ends(std::string_view rest);
/// Removes and returns the number in front; an empty token, with `text` unchanged, if there is none.
Token take_number(std::string_view& text);
/// The same of a number that may have commas between its thousands, "12,345" or "1,234.56"; `made` gets one without
/// them.
Token take_grouped_number(std::string_view& text, std::deque<std::string>& made);
inline std::string_view take_digits(std::string_view& text) { return take_while(text, is_digit); }
inline std::string_view take_key(std::string_view& text) { return take_while(text, is_key); }

/// The decimal number `text` with its point moved by `places`, digit for digit: ("135.12", -3) -> "0.13512".
std::string shifted(std::string_view text, int places);
/// "1.03" with "GiB" or "GB" (both 2^30, as in PyTorch's tools), "MB", "kB", "B": whole bytes as text; "" for any other
/// unit.
std::string bytes_of(std::string_view number, std::string_view unit);

/// `text` without terminal escape sequences (ESC [ ... letter, ESC ] ... BEL) and other control characters except TAB;
/// inside a word, and NULs after one, become U+FFFD, which is part of no number. Returns `text` itself if it has none,
/// else a view of `storage`.
std::string_view without_escapes(std::string_view text, std::string& storage);

/// The rank in a launcher's prefix ("[rank3]:", "[default3]:", "3: ", "[1,3]<stdout>:", "[Rank 3]"), as text; empty if
/// there is none. Only digits, at most kLongestRank of them: a longer number is a time. Behind the task of srun
/// --label, "1: [default3]:", 3 is a rank of that task's node alone: it becomes 1003.
constexpr std::size_t kLongestRank = 9;
std::string rank_of(std::string_view prefix);

/// A line with PyTorch's mark of a rank: "[rank3]: KeyError: 'loss'".
struct RankLine {
  std::string_view rank;  ///< "3"; "" without a mark
  std::string_view text;  ///< without the mark
};
RankLine rank_line(std::string_view line);

/// Whether a line is the last of a traceback: "torch.cuda.OutOfMemoryError: CUDA out of memory", "KeyboardInterrupt".
/// Only recognises classes whose names end as Python's own do.
bool is_exception(std::string_view line);

/// The last stamp of a logger in `text`, "2025-06-01 12:00:00,123", in seconds, and where it begins.
std::optional<std::pair<double, std::size_t>> stamp_in(std::string_view text);

}  // namespace zs::parse
