// SPDX-License-Identifier: Apache-2.0
// Which of many runs are like one another, so that one of them can be held against the others.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "metric/table.hpp"

namespace zs::stat {

/// Runs that train the same thing in the same way.
struct Alike {
  std::string label;              ///< "ref_*" where their names differ in digits alone, else "ref_000 and 4 more"
  std::vector<std::size_t> runs;  ///< places in the list that was given, ascending
};

/// Groups in order of their first run; each run is in one. Alike are runs with the same attributes of the roles
/// decides, arithmetic and layout (attribute/table.hpp). Left out are the seed, and what the table does not know and
/// what has another value in each of three runs or more, such as a name. Where a run does not say its model, its name
/// without digits and the columns of its records count too.
std::vector<Alike> alike(const std::vector<const metric::Run*>& runs);

/// "ref_070" is "ref_*".
std::string stem(const std::string& name);

/// "a_07 to a_10, b and c": names one after another that differ in one number, which grows by 1, are a range; of more
/// than `most` ranges and names the rest is counted.
std::string ranges(const std::vector<std::string>& names, std::size_t most = 6);

}  // namespace zs::stat
