// SPDX-License-Identifier: Apache-2.0
#include "train/batches.hpp"

#include <algorithm>

#include "base/error.hpp"

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
      leaves_(leaves) {
  if (model.vocab_size < data::Corpus::kVocabulary) {
    throw Error("model.vocab_size: " + std::to_string(model.vocab_size) + " is too small for bytes as tokens (256)");
  }
}

std::int64_t Batches::steps() const {
  const std::int64_t in_epochs = settings_.num_epochs * windows_.training / samples_per_step();
  const std::int64_t steps = settings_.max_steps > 0 ? settings_.max_steps : in_epochs;
  if (steps == 0) {
    throw Error(settings_.dataset, 0,
                std::to_string(windows_.training) + " samples do not fill one step of " +
                    std::to_string(samples_per_step()) + ": name more text, or set --max_steps");
  }
  return steps;
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
