// SPDX-License-Identifier: Apache-2.0
// The keys of DeepSpeed's configuration file and how zs treats each: one table.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace zs::config {

enum class Fate {
  sets,     ///< zs sets the key `what` to its value
  read,     ///< zs reads it together with others (add_deepspeed)
  idle,     ///< no effect in zs; `what` says why
  refused,  ///< zs refuses it, unless its value is one of `harmless`; `what` names the alternative
};

struct DeepSpeedKey {
  std::string_view path;  ///< "zero_optimization.stage"; a final ".*" matches all keys below
  Fate fate;
  std::string_view what{};
  std::string_view harmless{};  ///< values separated by blanks
};

/// The row of a path, or of its section; null if DeepSpeed has no such key.
const DeepSpeedKey* deepspeed_key(std::string_view path);

/// Whether DeepSpeed has keys below `path`.
bool deepspeed_section(std::string_view path);

/// All paths, for "did you mean".
std::vector<std::string> deepspeed_paths();

}  // namespace zs::config
