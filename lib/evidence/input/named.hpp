// SPDX-License-Identifier: Apache-2.0
// Resolves an operand for every tool: what it is, and whether the tool accepts it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "input/kind.hpp"
#include "registry/run.hpp"

namespace zs::input {

struct Named {
  std::string name;  ///< as given
  std::string path;  ///< of the file or folder; "-" for standard input
  Kind kind = Kind::nothing;
  std::string run{};  ///< the run's name, if the registry resolved it
};

/// Resolves `operand`: a path, "-", or if there is no such path that the tool takes, a run of `registry` by its id, a
/// unique prefix of it, or its name. `tool` is the tool and its mode: "zs-trace", "zs-plot trace".
/// Uses the first of a folder's kinds that the tool accepts. Throws Error if nothing matches,
/// as registry::place_of() does, and if the tool does not accept it: "PATH: is a profiler trace;
/// zs-parse takes ...; zs-trace takes it". With `registry` "" only paths are resolved.
Named named(const std::string& operand, const std::string& registry, std::string_view tool);
/// Of several operands, leaves out the table of runs in a registry (saved_models/*).
std::vector<Named> named(const std::vector<std::string>& operands, const std::string& registry, std::string_view tool);

/// The run that `operand` means, as named(): its folder, in any registry, or its id, the beginning of it or its name in
/// `registry`. Throws Error if it is a folder without the record of a run.
registry::Run run(const std::string& operand, const std::string& registry, std::string_view tool);

/// The traces among the operands, including the traces in folders.
std::vector<std::string> traces(const std::vector<Named>& named);

/// The paths of the operands.
std::vector<std::string> paths(const std::vector<Named>& named);

}  // namespace zs::input
