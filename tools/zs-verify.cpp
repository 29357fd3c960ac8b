// SPDX-License-Identifier: Apache-2.0
#include "cli/run.hpp"
#include "unit/arithmetic.hpp"
#include "verify/session.hpp"

namespace {

const zs::cli::Command kCommand = {
    "zs-verify",
    "Compare a training with plain PyTorch semantics or with its own repetition, or compare recorded runs, checkpoints "
    "or probes",
    "[CONFIG.yaml | RUN RUN... | TENSORS TENSORS...]",
    zs::verify::options(),
    {{0, "no difference beyond the tolerance"},
     {1, "a difference, or nothing was proved; the verdict says which"},
     {3, "no decision: the two train different things, or one lacks what the other has"}},
    {"zs-verify a b", "zs-verify --model_name tiny --zero_stage 3 --num_layers 1 --iterations 3",
     "zs-verify --model_name tiny --num_layers 1 --repeat 3"},
};

}  // namespace

int main(int argc, char** argv) {
  zs::unit::choose_products(argv);
  zs::verify::Session session;
  return zs::cli::run(
      kCommand, argc, argv, [&](const zs::cli::Args& args) { return session.verify(args); }, session.hooks());
}
