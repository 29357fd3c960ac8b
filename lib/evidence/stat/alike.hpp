// SPDX-License-Identifier: Apache-2.0
// Groups similar runs, so that each can be compared with the others.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "metric/table.hpp"

namespace zs::stat {

/// Runs that train the same thing in the same way.
struct Alike {
  std::string label;              ///< "ref_*" if their names differ only in digits, else "ref_000 and 4 more"
  std::vector<std::size_t> runs;  ///< indices in the given list, ascending
};

/// The groups in order of their first run; each run is in exactly one. Runs are alike if they have the same attributes
/// with the roles decides, arithmetic and layout (attribute/table.hpp), except the seed, and except unknown attributes
/// with three or more distinct values, such as a name. For a run without a model, its name without digits and the
/// columns of its records count too.
std::vector<Alike> alike(const std::vector<const metric::Run*>& runs);

/// "ref_070" is "ref_*".
std::string stem(const std::string& name);

/// "a_07 to a_10, b and c": consecutive names that differ in one number, which grows by 1, form a range; after `most`
/// ranges and names the rest is counted.
std::string ranges(const std::vector<std::string>& names, std::size_t most = 6);

}  // namespace zs::stat
