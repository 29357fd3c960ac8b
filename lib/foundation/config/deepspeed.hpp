// SPDX-License-Identifier: Apache-2.0
// Translates DeepSpeed's configuration file into settings of zs. Every key of it is honoured, refused, or reported as
// without effect, with its place and its path in the file; "auto" keeps the setting of zs, as a Trainer fills it in.
#pragma once
#include <string>

#include "config/config.hpp"

namespace zs::config {

/// Sets in `config` the settings of the file, and DeepSpeed's defaults for missing ones, unless `config` has them
/// already; adds warnings for keys without effect. REQUIRES: defaults are not added yet. Throws Error, located, if the
/// file is malformed, has a key that DeepSpeed lacks or zs rejects, or contradicts `config`.
void add_deepspeed(Config& config, const std::string& path);

/// Sets `entry`, which `said` names ("ds.json:3: zero_optimization.stage"). Throws Error if `config` has another value.
void agree(Config& config, Entry entry, const std::string& said);

/// Sets what --method and --backend imply (stage, backend, offload). A typed option overrides a value from a file;
/// throws Error if `config` contradicts itself.
void add_method(Config& config);

}  // namespace zs::config
