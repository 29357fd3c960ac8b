// SPDX-License-Identifier: Apache-2.0
// The form of the file that a tool writes: one table of endings for all tools.
#pragma once
#include <string>

#include "cli/command.hpp"

namespace zs::cli {

/// The form of the file that --output names: the typed --format, else the form of the name's ending, else `otherwise`.
/// The row of --output lists the possible forms (Option::forms); without a list, the choices of --format are possible.
/// Throws UsageError, which lists the endings that are taken, if the ending means another form, or none.
std::string form_of(const Args& args, const std::string& otherwise);

/// The same check before the tool begins; does nothing for tools without such rows.
void require_form(const Args& args);

}  // namespace zs::cli
