// SPDX-License-Identifier: Apache-2.0
#include "comparison/operand.hpp"

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"

namespace zs::comparison {
namespace {

namespace fs = std::filesystem;

/// The folder of a run for the files that zs writes into it, else the file or folder itself.
fs::path home(const input::Named& operand) {
  std::error_code failure;
  const fs::path path = fs::canonical(operand.path, failure);
  if (failure) return operand.path;
  const std::string name = path.filename().string();
  return is_run(operand) && (name == "metrics.h5" || name == "run.log") ? path.parent_path() : path;
}

}  // namespace

bool is_run(const input::Named& operand) {
  using enum input::Kind;
  return operand.kind != tensors && operand.kind != checkpoint && operand.kind != checkpoints &&
         operand.kind != probe && operand.kind != rollout;
}

void require_two(const input::Named& a, const input::Named& b) {
  if (is_run(a) != is_run(b)) {
    throw UsageError((is_run(a) ? a : b).name + " is a run and " + (is_run(a) ? b : a).name +
                     " holds tensors: name two runs, or a checkpoint of the run");
  }
  std::error_code ignored;
  if (home(a) == home(b) || fs::equivalent(a.path, b.path, ignored))
    throw UsageError(a.name + " and " + b.name + " are the same " + (is_run(a) ? "run" : "tensors") +
                     ": nothing would be compared");
}

}  // namespace zs::comparison
