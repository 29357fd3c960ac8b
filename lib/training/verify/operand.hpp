// SPDX-License-Identifier: Apache-2.0
// What an operand of zs-verify names: a run, or tensors.
#pragma once
#include <string>

namespace zs::verify {

struct Operand {
  std::string name;  ///< as given
  std::string path;  ///< of the folder or file that it means
  bool is_run = false;
};

/// A path: the folder of a run, a log or a metric file is a run; a checkpoint's folder, one of Hugging Face's, a file
/// of torch.save or safetensors are tensors. What is no path is a run of `registry`: its id, a unique beginning of it,
/// or its name. Throws zs::Error, located, where there is no such thing.
Operand operand(const std::string& name, const std::string& registry);

/// Throws zs::UsageError where both mean the same run or the same tensors, or one a run and one tensors.
void require_two(const Operand& a, const Operand& b);

}  // namespace zs::verify
