// SPDX-License-Identifier: Apache-2.0
// Writers of the checkpoints of other programs, as these resume from them. They check nothing: state/convert.hpp reads
// the result back and compares it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/state.hpp"

namespace zs::checkpoints {

/// The target form.
struct Form {
  std::string name{};                          ///< one of kForms
  std::optional<std::int64_t> ranks, stage{};  ///< how to divide the state; default: as it is, else 1
  std::string dtype{};  ///< "bf16", "f16", "f32": computation type of the resumed training; "": the checkpoint's
};
inline const std::vector<std::string> kForms = {"hf", "safetensors", "dcp", "deepspeed", "universal"};

// Each writes into an existing folder, and leaves out the values that the form has no place for. Throws Error if the
// checkpoint lacks what the form needs.
/// PyTorch's distributed checkpoint.
void write_dcp(const State& state, const std::string& folder, const Form& form);
/// The files of ZeRO-1 to 3 and `latest`; or with `universal` DeepSpeed's universal checkpoint and `latest_universal`.
void write_deepspeed(const State& state, const std::string& folder, const Form& form, bool universal);

}  // namespace zs::checkpoints
