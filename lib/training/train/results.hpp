// SPDX-License-Identifier: Apache-2.0
// Results of trainings by several methods in one JSON object, to which each adds its part.
#pragma once
#include <string>

#include "train/trainer.hpp"

namespace zs::train {

using setup::Settings;

/// The name of a training there: its method, or the one that follows from its stage, backend and offload.
std::string method_name(const Settings& settings);

/// Throws zs::Error where write_results() would.
void require_results(const std::string& path);

/// Writes the results of a method into the file, replacing its earlier ones; other methods keep theirs. Throws
/// zs::Error if it is a folder, or exists and is not a JSON object.
void write_results(const std::string& path, const std::string& method, const Outcome& outcome,
                   const metric::Table& records);

}  // namespace zs::train
