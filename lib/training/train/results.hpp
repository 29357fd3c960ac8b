// SPDX-License-Identifier: Apache-2.0
// What trainings by several methods came to, as one JSON dictionary that each of them adds its part to.
#pragma once
#include <string>

#include "train/trainer.hpp"

namespace zs::train {

using setup::Settings;

/// What a training is called there: its method, or what its stage, backend and offload come to.
std::string method_name(const Settings& settings);

/// Throws zs::Error where write_results() would.
void require_results(const std::string& path);

/// Puts the results of a method into the file, in place of those it had; other methods keep theirs. Throws zs::Error
/// where it is a folder, or is there and is no JSON dictionary.
void write_results(const std::string& path, const std::string& method, const Outcome& outcome,
                   const metric::Table& records);

}  // namespace zs::train
