// SPDX-License-Identifier: Apache-2.0
#include "cli/run.hpp"

namespace {

const zs::cli::Command kCommand = {
    "zs-sweep",
    "Expand a sweep into configurations",
    "[BASE.yaml SWEEP.yaml]",
    {
        {'c', "conditions", "FILE", "print the conditions of a set in FILE instead"},
        {'l', "list", "", "list the sets of the conditions file"},
    }};

}  // namespace

int main(int argc, char** argv) {
  return zs::cli::run(kCommand, argc, argv, [](const zs::cli::Args&) { return zs::Status::done; });
}
