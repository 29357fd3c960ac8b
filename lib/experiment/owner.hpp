// SPDX-License-Identifier: Apache-2.0
// Whose words a script would run: a run and a results folder may be anybody's.
#pragma once
#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

namespace zs::experiment {

/// Why not all of these paths are the caller's own, nor all parts of a record, which `record` owns; "" if they are. A
/// link is nobody's.
std::string of_another(const std::vector<std::string>& paths, const std::set<uid_t>& record = {});

/// What decides how a results folder's, or a run's, trainings are run: those of its files that are there.
std::vector<std::string> deciding_files(const std::string& folder);

/// Throws Error where deciding_files() of the folder, or the record in it, are another's.
void require_own(const std::string& folder);

}  // namespace zs::experiment
