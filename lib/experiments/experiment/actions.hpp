// SPDX-License-Identifier: Apache-2.0
// The actions of zs-runs.
#pragma once
#include "cli/command.hpp"
#include "experiment/action.hpp"

namespace zs::experiment {

/// zs-runs without an action: the runs as a table, or with --output as a page.
Status list(const cli::Args& args);
/// The action that the first operand names, of these rooms or of `further`. Throws UsageError, with the nearest, if
/// there is none.
Status act(const cli::Args& args, const Actions& further = {});

}  // namespace zs::experiment
