// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "state/state.hpp"
#include "tensorfile/value.hpp"

namespace zs::state {

/// Adds the tensors of a model's state dict. Two tensors with the same elements of one storage are tied.
void add_weights(State& into, const tensorfile::Value* dict, const std::string& file, int rank = -1);

/// Adds the weights that tensorfile::open_state_dict() finds in a folder or file, and throws as it does.
void add_model(State& into, const std::string& path);

}  // namespace zs::state
