// SPDX-License-Identifier: Apache-2.0
// The environment of a command: the revision of its code, its Python and its packages.
#pragma once
#include <string>
#include <vector>

#include "registry/record.hpp"

namespace zs::recording {

/// The Python of a command, as far as its words show it: a word that is a Python, or the interpreter in the first line
/// of its script (torchrun, deepspeed, accelerate); "" if unknown.
std::string python_of(const std::vector<std::string>& command);

/// revision, commit and git_diff of the current folder, and python, torch, cuda, nccl and packages (a SHA-256 over
/// names and versions) of the command's Python. Writes changes since the commit to `folder`/revision.diff and the
/// packages to `folder`/packages.txt, in pip freeze's format. Imports and runs nothing of the training. Leaves out what
/// cannot be found within a minute.
registry::Fields environment(const std::vector<std::string>& command, const std::string& folder);

}  // namespace zs::recording
