// SPDX-License-Identifier: Apache-2.0
// What Python prints of an exception, from "Traceback (most recent call last):" to "KeyError: 'loss'".
#pragma once
#include <string_view>

namespace zs::parse {

/// A line of a rank that PyTorch marks, "[rank3]: KeyError: 'loss'".
struct RankLine {
  std::string_view rank;  ///< "3"; "" where nobody marks it
  std::string_view text;  ///< without the mark
};
RankLine rank_line(std::string_view line);

/// Whether a line begins a traceback; a launcher's prefix may stand before it.
bool begins_traceback(std::string_view line);

/// Whether a line is the last of a traceback: "torch.cuda.OutOfMemoryError: CUDA out of memory", "KeyboardInterrupt".
/// Classes whose names do not end as Python's own do are not known.
bool is_exception(std::string_view line);

/// Whether a line says that the next exception was raised while the one before it was handled.
bool is_chained(std::string_view line);

}  // namespace zs::parse
