// SPDX-License-Identifier: Apache-2.0
// DeepSpeed's configuration file as settings of zs. Every key that it has is honoured, refused, or named as without
// effect here, with its place and its path in the file; "auto" leaves a setting to zs's own, as a Trainer fills it in.
#pragma once
#include <string>

#include "config/config.hpp"

namespace zs::config {

/// Sets in `config`, to which defaults are not added yet, what the file asks for, and where it leaves something out,
/// what DeepSpeed takes then, unless `config` has that already; notes in it what has no effect. Throws Error, located,
/// where the file is malformed, where it has a key that DeepSpeed has not or zs refuses, and where `config` says
/// something else than the file.
void add_deepspeed(Config& config, const std::string& path);

/// Sets what --method and --backend stand for (stage, backend, offload). What stands in a file gives way to one that
/// was typed; throws Error where `config` says something else besides.
void add_method(Config& config);

}  // namespace zs::config
