// SPDX-License-Identifier: Apache-2.0
// Python's exception output, from "Traceback (most recent call last):" to "KeyError: 'loss'".
#pragma once
#include <string_view>

namespace zs::parse {

/// A line with PyTorch's mark of a rank: "[rank3]: KeyError: 'loss'".
struct RankLine {
  std::string_view rank;  ///< "3"; "" without a mark
  std::string_view text;  ///< without the mark
};
RankLine rank_line(std::string_view line);

/// Whether a line begins a traceback, perhaps after a launcher's prefix.
bool begins_traceback(std::string_view line);

/// Whether a line is the last of a traceback: "torch.cuda.OutOfMemoryError: CUDA out of memory", "KeyboardInterrupt".
/// Only recognises classes whose names end as Python's own do.
bool is_exception(std::string_view line);

}  // namespace zs::parse
