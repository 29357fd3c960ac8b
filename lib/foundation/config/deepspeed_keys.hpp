// SPDX-License-Identifier: Apache-2.0
// The keys of DeepSpeed's configuration file and what becomes of each: one table.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zs::config {

enum class Fate {
  sets,     ///< `what` is the key of zs that takes its value
  read,     ///< read together with others (add_deepspeed)
  idle,     ///< without effect here; `what` says why
  refused,  ///< asks for what zs does not do, unless its value is one of `harmless`; `what` says what there is instead
};

struct DeepSpeedKey {
  std::string_view path;  ///< "zero_optimization.stage"; one that ends with ".*" stands for all below it
  Fate fate;
  std::string_view what{};
  std::string_view harmless{};  ///< values separated by blanks
};

/// The row of a path, or of the section that it stands in; nothing where DeepSpeed has no such key.
const DeepSpeedKey* deepspeed_key(std::string_view path);

/// Whether DeepSpeed has keys below it.
bool deepspeed_section(std::string_view path);

/// All paths, for "did you mean".
std::vector<std::string> deepspeed_paths();

}  // namespace zs::config
