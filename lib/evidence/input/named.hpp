// SPDX-License-Identifier: Apache-2.0
// What a user named, for every tool: what it is, and whether the tool takes it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "input/kind.hpp"

namespace zs::input {

struct Named {
  std::string name;  ///< as given
  std::string path;  ///< of the file or folder that it means; "-" for standard input
  Kind kind = Kind::nothing;
  std::string run{};  ///< the run's name, where the registry told what is meant
};

/// What `operand` means: a path, "-", or where there is no such path a run of `registry` by its id, a unique beginning
/// of it, or its name. `tool` is the tool and what it is asked for: "zs-trace", "zs-plot trace". Of the things that a
/// folder is, the first that the tool takes counts. Throws Error where there is no such thing, as registry::place_of()
/// does, and where the tool does not take it: "PATH: is a profiler trace; zs-parse takes ...; zs-trace takes it".
/// `registry` "": only paths are meant.
Named named(const std::string& operand, const std::string& registry, std::string_view tool);
std::vector<Named> named(const std::vector<std::string>& operands, const std::string& registry, std::string_view tool);

/// The id, a beginning of it or the name that `operand` gives for a run of `registry`: itself, or that of a run's
/// folder. Throws Error where it is a path of anything else.
std::string run_id(const std::string& operand, const std::string& registry, std::string_view tool);

/// The traces that were named, those of a folder too.
std::vector<std::string> traces(const std::vector<Named>& named);

/// The paths of what was named.
std::vector<std::string> paths(const std::vector<Named>& named);

}  // namespace zs::input
