// SPDX-License-Identifier: Apache-2.0
// The command line of zs-verify, and the settings of zs-train that it ignores.
#pragma once
#include <array>
#include <string_view>

#include "cli/command.hpp"
#include "compare/measure.hpp"

namespace zs::comparison {

/// The option table of zs-verify: the relevant options of zs-train, with zs-verify's defaults.
cli::Command command();

/// Whether a comparison uses a key of the configuration: it writes, evaluates and names nothing, trains for
/// --iterations steps, and begins from initial weights.
bool used(std::string_view key);

/// Defaults with which a small model is compared in seconds.
struct Default {
  const char *key, *value;
};
inline constexpr std::array kDefaults = {Default{"model.name", "tiny"}, Default{"model.context_length", "32"},
                                         Default{"training.max_steps", "10"}};

/// --rtol and --atol; defaults from `otherwise`.
compare::Tolerance tolerance(const cli::Args& args, compare::Tolerance otherwise = {});

}  // namespace zs::comparison
