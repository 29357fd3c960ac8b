// SPDX-License-Identifier: Apache-2.0
// Names that people type: the nearest known one, for "did you mean".
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace zs {

/// Optimal string alignment distance: insertions, deletions, substitutions, neighbour swaps.
int edit_distance(std::string_view a, std::string_view b);

/// The candidates nearest to `name`, best first, at most `count`, none further than a third of its length + 1; one that
/// contains `name` is near, too: "steps" means "max_steps".
std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates,
                                 std::size_t count = 1);

/// ", did you mean 'x'?" or an empty string: to append to an error.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

/// Letters of a name that names files: file systems take 255, and what stands behind it ("_detailed.log") needs some.
inline constexpr std::size_t kLongestName = 200;

/// Whether `name` can name a file as it is, in a shell too: at most kLongestName letters, digits, '_', '-', '.', not
/// led by '-' or '.'.
bool names_file(std::string_view name);

/// "'a/b' cannot name a condition: use letters, digits, '_', '-', '.'": what an error says of `name`, of which
/// names_file() is false. A name that is too long is cut.
std::string cannot_name(std::string_view name, std::string_view what);

}  // namespace zs
