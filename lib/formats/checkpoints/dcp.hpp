// SPDX-License-Identifier: Apache-2.0
// PyTorch's distributed checkpoints: `.metadata`, a pickle with the place of each part, and files *.distcp of parts,
// each a file of torch.save. FSDP, torchtitan, Accelerate and Megatron-core write them. Format:
// torch/distributed/checkpoint/metadata.py and filesystem.py.
#pragma once
#include <string>

#include "checkpoints/state.hpp"

namespace zs::checkpoints {

/// Whether the folder has a `.metadata`, or files of parts (.distcp).
bool is_dcp(const std::string& folder);

/// Adds the content of the checkpoint in `folder`; names of its files begin
/// with `place` ("optimizer_0/"). Throws Error if `.metadata` cannot be
/// read; any other missing or inconsistent part is a fault of the state.
void add_dcp(State& into, const std::string& folder, const std::string& place = "");

/// The meaning of a name in such a checkpoint. Megatron-core (`megatron`) puts the moment before the parameter.
struct Key {
  enum class Kind { weight, master, moment, step, hyper, fact } kind = Kind::fact;
  std::string name{};    ///< of the parameter, or of the fact
  std::string moment{};  ///< "exp_avg", or the setting of a group
};
Key key_of(const std::string& fqn, bool megatron = false);

}  // namespace zs::checkpoints
