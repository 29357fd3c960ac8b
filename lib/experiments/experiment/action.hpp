// SPDX-License-Identifier: Apache-2.0
// Shared by the actions of zs-runs: their operands, the registry, the form of a table.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/sheet.hpp"
#include "cli/command.hpp"
#include "registry/listing.hpp"
#include "registry/run.hpp"
#include "registry/runs.hpp"

namespace zs::experiment {

using Actions = std::map<std::string, Status (*)(const cli::Args&)>;

/// show, diff; rerun, update, add, import, rm, reindex; plan, start, finish, state, watch.
const Actions& showing();
const Actions& changing();
const Actions& scripting();

/// The operands between the action and "--": at least `count`, and no more unless `more`. Throws UsageError.
std::vector<std::string> operands(const cli::Args& args, std::size_t count, bool more, const std::string& what);

/// The registry that the options name.
std::string place_of(const cli::Args& args);
/// Reads the registry; damaged records are printed and counted in `faults`.
registry::Runs read(const cli::Args& args, const std::string& place, std::int64_t& faults);
std::vector<registry::Run> runs_of(const cli::Args& args, const std::vector<std::string>& operands);

/// The question that the options ask.
registry::Question question_of(const cli::Args& args);
/// The status of an action with this number of faults.
inline Status verdict(std::int64_t faults) { return faults ? Status::no : Status::done; }

// The actions of zs-runs.

/// zs-runs without an action: the runs as a table, or with --output as a page.
Status list(const cli::Args& args);
/// The action that the first operand names, of these rooms or of `further`. Throws UsageError, with the nearest, if
/// there is none.
Status act(const cli::Args& args, const Actions& further = {});

}  // namespace zs::experiment
