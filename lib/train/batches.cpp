// SPDX-License-Identifier: Apache-2.0
#include "train/batches.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/number.hpp"
#include "data/corpus.hpp"
#include "data/token_file.hpp"

namespace zs::train {
namespace {

constexpr double kValidation = 0.1;  // share of the windows held out

/// The tokens of the data set that the settings name. Throws zs::Error where the model does not know all of them.
std::shared_ptr<const data::Tokens> tokens_of(const Settings& settings, const model::Model& model) {
  if (data::is_token_file(settings.dataset)) {
    return std::make_shared<data::TokenFile>(settings.dataset, model.vocab_size, settings.dataset_percentage,
                                             settings.dataset_size);
  }
  if (!settings.tokenizer.empty()) {
    return data::tokenized_text(settings.dataset, settings.tokenizer, model.vocab_size, settings.dataset_percentage,
                                settings.dataset_size);
  }
  auto tokens = std::make_shared<data::Corpus>(settings.dataset, settings.dataset_percentage, settings.dataset_size);
  if (model.vocab_size < tokens->vocabulary()) {
    throw Error("model.vocab_size: " + std::to_string(model.vocab_size) + " is too small for bytes as tokens (256)");
  }
  return tokens;
}

unit::Batch batch(const data::Samples& samples, std::int64_t length) {
  const auto tensor = [&](const std::vector<std::int64_t>& numbers) {
    return at::from_blob(const_cast<std::int64_t*>(numbers.data()), {samples.count, length}, at::kLong).clone();
  };
  return {tensor(samples.inputs), tensor(samples.targets)};
}

}  // namespace

Batches::Batches(const Settings& settings, const model::Model& model, std::int64_t leaves)
    : settings_(settings),
      tokens_(tokens_of(settings, model)),
      split_(data::windows(tokens_, settings.model.seq_length, kValidation)),
      samples_per_step_(product("sequences of a step", {leaves, settings.batch_size})),
      loader_(*split_.training, settings.batch_size, leaves, settings.engine.seed) {
  product("tokens of a step", {samples_per_step_, settings.model.seq_length});
}

std::int64_t Batches::steps() const {
  const std::int64_t steps = settings_.num_epochs == 0  ? settings_.max_steps
                             : settings_.max_steps == 0 ? steps_of_epochs()
                                                        : std::min(settings_.max_steps, steps_of_epochs());
  product("sequences of the training", {steps, samples_per_step()});
  if (steps == 0) {
    throw Error(settings_.dataset, 0,
                std::to_string(split_.training->size()) + " samples, " + std::to_string(settings_.num_epochs) +
                    " times, do not fill one step of " + std::to_string(samples_per_step()) +
                    ": name more text, or set --max_steps without --num_epochs");
  }
  return steps;
}

std::int64_t Batches::steps_of_epochs() const {
  return product("samples of all epochs", {settings_.num_epochs, split_.training->size()}) / samples_per_step();
}

std::string Batches::cut_short() const {
  if (settings_.num_epochs == 0 || settings_.max_steps == 0 || settings_.max_steps >= steps_of_epochs()) return "";
  return "stopped by max_steps before the end of epoch " + to_text(epoch(settings_.max_steps)) + ": num_epochs " +
         to_text(settings_.num_epochs) + " takes " + to_text(steps_of_epochs()) + " steps, max_steps is " +
         to_text(settings_.max_steps);
}

unit::Batch Batches::training(std::int64_t step, std::int64_t leaf) {
  return batch(loader_.read(step, leaf), split_.training->length());
}

std::int64_t Batches::validation_leaves() const {
  return (split_.validation->size() + settings_.eval_batch_size - 1) / settings_.eval_batch_size;
}

unit::Batch Batches::validation(std::int64_t leaf) const {
  const std::int64_t first = leaf * settings_.eval_batch_size;
  const std::int64_t count = std::min(settings_.eval_batch_size, split_.validation->size() - first);
  return batch(data::read(*split_.validation, first, count), split_.validation->length());
}

}  // namespace zs::train
