// SPDX-License-Identifier: Apache-2.0
#include "setup/batches.hpp"

#include <algorithm>
#include <memory>

#include "base/error.hpp"
#include "base/number.hpp"
#include "data/images.hpp"
#include "data/text.hpp"

namespace zs::setup {
namespace {

data::Split split_of(const Settings& settings, const model::Model& model) {
  const std::string path = settings.dataset == data::kGenerated ? settings.dataset : data::find(settings.dataset);
  if (model.takes_images()) {
    image::Transform transform = settings.transform;
    transform.size = model.image_size;
    return data::images({.path = path,
                         .transform = transform,
                         .seed = settings.engine.seed,
                         .labels = model.labels,
                         .percentage = settings.dataset_percentage,
                         .most = settings.dataset_size,
                         .held_out = settings.held_out,
                         .skip_bad = settings.skip_bad_images,
                         .threads = settings.num_workers});
  }
  return data::text({.path = path,
                     .tokenizer = settings.tokenizer,
                     .text_key = settings.text_key,
                     .vocabulary = model.vocab_size,
                     .length = settings.model.seq_length,
                     .percentage = settings.dataset_percentage,
                     .most = settings.dataset_size,
                     .held_out = settings.held_out,
                     .packing = settings.packing,
                     .too_long = settings.too_long,
                     .loss_on = settings.loss_on});
}

/// Targets in a part of a data set.
std::int64_t targets(const data::Dataset& samples, std::int64_t first, std::int64_t count) {
  std::int64_t sum = 0;
  for (std::int64_t i = first; i < first + count; ++i) sum += samples.targets(i);
  return sum;
}

/// The factor for the mean of a micro-batch: its share of the targets over its share of the samples.
float weight(std::int64_t targets, std::int64_t all_targets, std::int64_t samples, std::int64_t all_samples) {
  return static_cast<float>(static_cast<double>(targets) * static_cast<double>(all_samples) /
                            (static_cast<double>(all_targets) * static_cast<double>(samples)));
}

/// A tensor that takes the numbers over.
template <typename T>
at::Tensor tensor(std::vector<T> numbers, const std::vector<std::int64_t>& shape, at::ScalarType type) {
  const auto kept = std::make_shared<std::vector<T>>(std::move(numbers));
  return at::from_blob(
      kept->data(), shape, [kept](void*) {}, at::TensorOptions(type));
}

}  // namespace

Batches::Batches(const Settings& settings, const model::Model& model, std::int64_t micro_batches)
    : settings_(settings),
      shape_(model.takes_images() ? std::vector<std::int64_t>{3, model.image_size, model.image_size}
                                  : std::vector<std::int64_t>{settings.model.seq_length}),
      split_(split_of(settings, model)),
      labels_(static_cast<std::size_t>(model.num_labels)),
      samples_per_step_(product("samples of a step", {micro_batches, settings.batch_size})),
      loader_(*split_.training, settings.batch_size, micro_batches, settings.engine.seed) {
  product("tokens of a step", {samples_per_step_, settings.model.seq_length});
  for (const Part part : {Part::validation, Part::test}) {
    if (const data::Dataset* const samples = of(part); samples && samples->pads())
      held_out_targets_[part] = targets(*samples, 0, samples->size());
  }
}

std::int64_t Batches::steps() const {
  const std::int64_t steps = settings_.num_epochs == 0  ? settings_.max_steps
                             : settings_.max_steps == 0 ? steps_of_epochs()
                                                        : std::min(settings_.max_steps, steps_of_epochs());
  product("samples of the training", {steps, samples_per_step()});
  if (steps == 0) {
    throw Error(settings_.dataset, 0,
                std::to_string(split_.training->size()) + " samples, " + std::to_string(settings_.num_epochs) +
                    " times, do not fill one step of " + std::to_string(samples_per_step()) +
                    ": name more data, or set --max_steps without --num_epochs");
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

unit::Batch Batches::batch(data::Samples samples) const {
  std::vector<std::int64_t> inputs = {samples.count}, targets = {samples.count};
  inputs.insert(inputs.end(), shape_.begin(), shape_.end());
  if (!samples.pixels.empty())
    return {tensor(std::move(samples.pixels), inputs, at::kFloat),
            tensor(std::move(samples.targets), targets, at::kLong)};
  unit::Batch made{tensor(std::move(samples.tokens), inputs, at::kLong),
                   tensor(std::move(samples.targets), inputs, at::kLong)};
  if (!samples.lengths.empty()) made.lengths = tensor(std::move(samples.lengths), {samples.count}, at::kLong);
  // If each sample is one document, no mask is needed.
  if (static_cast<std::int64_t>(samples.documents.size()) > samples.count)
    made.documents = unit::documents(std::move(samples.documents), samples.count, settings_.model.seq_length);
  return made;
}

unit::Batch Batches::leaf(std::int64_t leaf, Newest& newest, std::int64_t from,
                          const std::function<unit::Batch(std::int64_t)>& read) const {
  const std::int64_t chunks = settings_.chunks, number = leaf / chunks;
  if (chunks == 1) return read(number);
  if (newest.from != from || newest.number != number) newest = {from, number, read(number)};
  return newest.batch.chunk(leaf % chunks, chunks);
}

unit::Batch Batches::training(std::int64_t step, std::int64_t leaf) {
  return this->leaf(leaf, trained_, step, [&](std::int64_t number) { return micro_batch(step, number); });
}

unit::Batch Batches::micro_batch(std::int64_t step, std::int64_t number) {
  unit::Batch made = batch(loader_.read(step, number));
  if (split_.training->pads())
    made.weight = weight(loader_.targets(step, number), loader_.targets(step), settings_.batch_size, samples_per_step_);
  return made;
}

std::int64_t Batches::tokens(std::int64_t step) const {
  return split_.training->pads() ? loader_.targets(step) : samples_per_step_ * settings_.model.seq_length;
}

const data::Dataset* Batches::of(Part part) const {
  return part == Part::validation ? split_.validation.get() : split_.test.get();
}

std::int64_t Batches::micro_batches(Part part) const {
  const data::Dataset* const samples = of(part);
  return samples ? (samples->size() + settings_.eval_batch_size - 1) / settings_.eval_batch_size : 0;
}

unit::Batch Batches::held_out(Part part, std::int64_t leaf) {
  return this->leaf(leaf, held_out_, static_cast<std::int64_t>(part), [&](std::int64_t number) {
    const data::Dataset& samples = *of(part);
    const std::int64_t first = number * settings_.eval_batch_size,
                       count = std::min(settings_.eval_batch_size, samples.size() - first);
    unit::Batch made = batch(data::read(samples, first, count));
    if (samples.pads())
      made.weight = weight(targets(samples, first, count), held_out_targets_.at(part), count, samples.size());
    return made;
  });
}

}  // namespace zs::setup
