// SPDX-License-Identifier: Apache-2.0
// Names that users type: the nearest known one, for "did you mean".
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace zs {

/// Optimal string alignment distance: insertions, deletions, substitutions, swaps of neighbours.
int edit_distance(std::string_view a, std::string_view b);

/// The at most `count` candidates nearest to `name`, best first, none further than a third of its length + 1. A
/// candidate that contains `name` is near, too: "steps" means "max_steps".
std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates,
                                 std::size_t count = 1);

/// ", did you mean 'x'?" or "": to append to an error.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

/// Longest name of which zs makes file names: file systems allow 255, and suffixes ("_detailed.log") need some.
inline constexpr std::size_t kLongestName = 200;

/// Whether `name` can be part of a file name without quoting: at most kLongestName letters, digits, '_', '-', '.', and
/// no '-' or '.' at the front.
bool names_file(std::string_view name);

/// "'a/b' cannot name a condition: use letters, digits, '_', '-', '.'": the error for a `name` that names_file()
/// refuses. A name that is too long is cut.
std::string cannot_name(std::string_view name, std::string_view what);

}  // namespace zs
