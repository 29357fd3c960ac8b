// SPDX-License-Identifier: Apache-2.0
// PyTorch's distributed checkpoints: `.metadata`, a pickle that says where each part lies, and files *.distcp of parts,
// each a file of torch.save of its own. As FSDP, torchtitan, Accelerate and Megatron-core write them. Format:
// torch/distributed/checkpoint/metadata.py and filesystem.py.
#pragma once
#include <string>

#include "state/state.hpp"

namespace zs::state {

/// Whether the folder has a `.metadata`.
bool is_dcp(const std::string& folder);

/// Adds what the checkpoint in `folder` holds; `place` leads in the names of its files ("optimizer_0/"). Throws Error
/// where
/// `.metadata` cannot be read; what else is missing or does not fit is a fault of the state.
void add_dcp(State& into, const std::string& folder, const std::string& place = "");

/// Which of the form's tensors a name of such a checkpoint is.
struct Key {
  enum class Kind { weight, master, moment, step, hyper, fact } kind = Kind::fact;
  std::string name{};    ///< of the parameter, or of the fact
  std::string moment{};  ///< "exp_avg", or the setting of a group
};
Key key_of(const std::string& fqn);

}  // namespace zs::state
