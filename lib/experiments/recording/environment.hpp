// SPDX-License-Identifier: Apache-2.0
// What a command runs in: the revision of its code, its Python and the packages there.
#pragma once
#include <string>
#include <vector>

#include "registry/record.hpp"

namespace zs::recording {

/// The Python that a command runs, as far as its words tell it: a word that is one, or the interpreter that its script
/// names in its first line (torchrun, deepspeed, accelerate); "" where none does.
std::string python_of(const std::vector<std::string>& command);

/// revision, commit and git_diff of the folder that we are in, and python, torch, cuda, nccl and packages (a SHA-256
/// over names and versions) of the command's Python. What differs from the commit is written to `folder`/revision.diff,
/// the packages to `folder`/packages.txt, as pip freeze has them. Nothing of the training is imported or run. What
/// cannot be found out in a minute is left out.
registry::Fields environment(const std::vector<std::string>& command, const std::string& folder);

}  // namespace zs::recording
