// SPDX-License-Identifier: Apache-2.0
#include "setup/choices.hpp"

#include "base/error.hpp"

namespace zs::setup {

using config::setting;

void choose_checkpoints(const config::Reading& config, Settings& s) {
  s.save_steps = config[setting<"training.save_steps">];
  s.save_final = config[setting<"training.save_final">];
  s.save_pretrained = config[setting<"training.save_pretrained">].value_or("");
  if (s.save_steps > 0) s.keep_last = config[setting<"training.keep_last">];
  if (s.save_steps == 0 && !s.save_final) return;
  s.checkpoint_format = config[setting<"training.checkpoint_format">].value_or("");
  s.save_gradients = config[setting<"training.save_gradients">];
  s.save_gradient_norms = config[setting<"training.save_gradient_norms">];
  if (!s.save_gradient_norms) return;
  const auto refuse = [&](const std::string& why) {
    const config::Entry* const entry = config.entry(setting<"training.save_gradient_norms">);
    throw Error(entry->origin + ": " + entry->key + " is of " + why);
  };
  if (!s.save_gradients) refuse("gradients that are saved: leave out save_gradients, which is false");
  if (s.chunks > 1) refuse("whole micro-batches, and sequences are computed in chunks: leave it out");
  if (s.experts > 1) refuse("whole micro-batches, and experts are divided among ranks: leave it out");
}

}  // namespace zs::setup
