// SPDX-License-Identifier: Apache-2.0
// The command line of zs-verify, and what of zs-train's it leaves out.
#pragma once
#include <array>
#include <string_view>

#include "cli/command.hpp"
#include "compare/measure.hpp"

namespace zs::comparison {

/// The table of zs-verify: zs-train's options that matter here, with zs-verify's own defaults.
cli::Command command();

/// Whether a comparison uses a key of the configuration: it does not write, evaluate or name anything, trains for so
/// many steps as --iterations says, and begins from initial weights.
bool used(std::string_view key);

/// What a small model needs to be compared in seconds.
struct Default {
  const char *key, *value;
};
inline constexpr std::array kDefaults = {Default{"model.name", "tiny"}, Default{"model.context_length", "32"},
                                         Default{"training.max_steps", "10"}};

/// --rtol and --atol; what is not given is as in `otherwise`.
compare::Tolerance tolerance(const cli::Args& args, compare::Tolerance otherwise = {});

}  // namespace zs::comparison
