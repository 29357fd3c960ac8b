// SPDX-License-Identifier: Apache-2.0
#include "train/batches.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/number.hpp"

namespace zs::train {
namespace {

constexpr double kValidation = 0.1;  // share of the windows held out

}  // namespace

Batches::Batches(const Settings& settings, const model::Model& model, std::int64_t leaves)
    : settings_(settings),
      corpus_(data::read_corpus(settings.dataset, settings.dataset_percentage, settings.dataset_size)),
      windows_(data::windows(settings.dataset, static_cast<std::int64_t>(corpus_.tokens.size()),
                             settings.model.seq_length, kValidation)),
      sampler_(windows_.training, settings.engine.seed),
      samples_per_step_(product("sequences of a step", {leaves, settings.batch_size})) {
  product("tokens of a step", {samples_per_step_, settings.model.seq_length});
  if (model.vocab_size < data::Corpus::kVocabulary) {
    throw Error("model.vocab_size: " + std::to_string(model.vocab_size) + " is too small for bytes as tokens (256)");
  }
}

std::int64_t Batches::steps() const {
  const std::int64_t steps = settings_.num_epochs == 0  ? settings_.max_steps
                             : settings_.max_steps == 0 ? steps_of_epochs()
                                                        : std::min(settings_.max_steps, steps_of_epochs());
  product("sequences of the training", {steps, samples_per_step()});
  if (steps == 0) {
    throw Error(settings_.dataset, 0,
                std::to_string(windows_.training) + " samples, " + std::to_string(settings_.num_epochs) +
                    " times, do not fill one step of " + std::to_string(samples_per_step()) +
                    ": name more text, or set --max_steps without --num_epochs");
  }
  return steps;
}

std::int64_t Batches::steps_of_epochs() const {
  return product("samples of all epochs", {settings_.num_epochs, windows_.training}) / samples_per_step();
}

std::string Batches::cut_short() const {
  if (settings_.num_epochs == 0 || settings_.max_steps == 0 || settings_.max_steps >= steps_of_epochs()) return "";
  return "stopped by max_steps before the end of epoch " + to_text(epoch(settings_.max_steps)) + ": num_epochs " +
         to_text(settings_.num_epochs) + " takes " + to_text(steps_of_epochs()) + " steps, max_steps is " +
         to_text(settings_.max_steps);
}

unit::Batch Batches::training(std::int64_t step, std::int64_t leaf) {
  const std::int64_t position = (step - 1) * samples_per_step() + leaf * settings_.batch_size;
  return batch(settings_.batch_size,
               [&](std::int64_t i) { return windows_.training_start(sampler_.at(position + i)); });
}

std::int64_t Batches::validation_leaves() const {
  return (windows_.validation + settings_.eval_batch_size - 1) / settings_.eval_batch_size;
}

unit::Batch Batches::validation(std::int64_t leaf) const {
  const std::int64_t first = leaf * settings_.eval_batch_size;
  return batch(std::min(settings_.eval_batch_size, windows_.validation - first),
               [&](std::int64_t i) { return windows_.validation_start(first + i); });
}

unit::Batch Batches::batch(std::int64_t samples, const std::function<std::int64_t(std::int64_t)>& start) const {
  const std::int64_t length = settings_.model.seq_length;
  const auto options = at::TensorOptions(at::kLong);
  unit::Batch batch{at::empty({samples, length}, options), at::empty({samples, length}, options)};
  auto* const tokens = batch.tokens_BT.data_ptr<std::int64_t>();
  auto* const targets = batch.targets_BT.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::uint8_t* const from = corpus_.tokens.data() + start(i);
    for (std::int64_t t = 0; t < length; ++t) {
      tokens[i * length + t] = from[t];
      targets[i * length + t] = from[t + 1];
    }
  }
  return batch;
}

}  // namespace zs::train
