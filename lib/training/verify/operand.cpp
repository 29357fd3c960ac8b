// SPDX-License-Identifier: Apache-2.0
#include "verify/operand.hpp"

#include <filesystem>

#include "base/error.hpp"
#include "compare/content.hpp"
#include "compare/probe_file.hpp"
#include "registry/query.hpp"

namespace zs::verify {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// The folder of a run for the files that zs writes into it, else the file or folder itself.
fs::path home(const Operand& operand) {
  std::error_code failure;
  const fs::path path = fs::canonical(operand.path, failure);
  if (failure) return operand.path;
  const std::string name = path.filename().string();
  return operand.is_run && (name == "metrics.h5" || name == "run.log") ? path.parent_path() : path;
}

}  // namespace

Operand operand(const std::string& name, const std::string& registry) {
  if (name == "-") throw UsageError("two runs are compared by name, not from stdin");
  Operand made{name, name, true};
  if (!is_there(name)) made.path = registry::run_folder(name, registry);
  std::error_code ignored;
  if (!fs::is_directory(made.path, ignored)) {
    made.is_run = !compare::holds_tensors(made.path);
    return made;
  }
  const fs::path folder(made.path);
  if (compare::holds_probe(made.path)) {
    made.is_run = false;
    return made;
  }
  if (is_there(folder / "metrics.h5") || is_there(folder / "run.log")) return made;
  if (compare::files_of(made.path).empty())
    throw Error(made.path, 0,
                "has neither metrics.h5 nor run.log, and no weights: name the folder of a run or of a checkpoint");
  made.is_run = false;
  return made;
}

void require_two(const Operand& a, const Operand& b) {
  if (a.is_run != b.is_run) {
    throw UsageError((a.is_run ? a : b).name + " is a run and " + (a.is_run ? b : a).name +
                     " holds tensors: name two runs, or a checkpoint of the run");
  }
  std::error_code ignored;
  if (home(a) == home(b) || fs::equivalent(a.path, b.path, ignored))
    throw UsageError(a.name + " and " + b.name + " are the same " + (a.is_run ? "run" : "tensors") +
                     ": nothing would be compared");
}

}  // namespace zs::verify
