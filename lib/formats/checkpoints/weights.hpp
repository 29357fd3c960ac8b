// SPDX-License-Identifier: Apache-2.0
// Files that the folders of zs, Hugging Face and other trainers share.
#pragma once
#include <string>

#include "checkpoints/state.hpp"
#include "tensorfile/safetensors.hpp"
#include "tensorfile/value.hpp"

namespace zs::checkpoints {

/// Adds the tensors of a model's state dict. Two tensors with the same elements of one storage are tied.
void add_weights(State& into, const tensorfile::Value* dict, const std::string& file, int rank = -1);

/// Adds the weights that tensorfile::open_state_dict() finds in a folder or file, and throws as it does; `lead` comes
/// before each name. Everything else in that file is a fact "model.NAME". Weights in another file of the folder that
/// are not the same are a fault.
void add_model(State& into, const std::string& path, const std::string& lead = "");

/// Adds gradients.pt, gradient_norms.pt and config.json, where the folder has them; a damaged one is a fault.
void add_documents(State& into, const std::string& folder);

// The state besides weights as one safetensors file: "master.NAME", "exp_avg.NAME" and so on, "random.0.cpu" of values,
// and in its `__metadata__` under "zs_state" a JSON of steps, settings, ties and values.

inline constexpr const char* kOptimizerFile = "optimizer.safetensors";

/// Adds to `tensors` those within the values of the state.
tensorfile::Metadata metadata_of(const State& state, std::map<std::string, Whole>& tensors);

/// Adds the content of the file. A file of another program, without "zs_state", is a fault. Throws Error if it is
/// damaged.
void add_safetensors(State& into, const std::string& path);

}  // namespace zs::checkpoints
