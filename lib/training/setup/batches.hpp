// SPDX-License-Identifier: Apache-2.0
// The samples of each micro-batch of a training: the same for every stage, rank count and checker.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/loader.hpp"
#include "model/model.hpp"
#include "setup/settings.hpp"
#include "unit/unit.hpp"

namespace zs::setup {

/// The parts that are not trained on.
enum class Part { validation, test };

class Batches {
 public:
  /// Reads the data set. A step has `micro_batches` over all ranks. Throws zs::Error if data, model and sequence
  /// length do not match.
  Batches(const Settings& settings, const model::Model& model, std::int64_t micro_batches);

  /// The micro-batch of a leaf of a step, or its chunk where sequences have chunks; steps count from 1.
  unit::Batch training(std::int64_t step, std::int64_t leaf);
  /// The micro-batch, with its whole sequences, that holds what training() gave last: `leaf`.
  const unit::Batch& whole(const unit::Batch& leaf) const { return settings_.chunks == 1 ? leaf : trained_.batch; }
  /// A micro-batch with its whole sequences.
  unit::Batch micro_batch(std::int64_t step, std::int64_t number);
  /// Number of target tokens of a step over all leaves, without padding.
  std::int64_t tokens(std::int64_t step) const;
  /// Number of micro-batches of a held-out part, each sample once; the last may be smaller. 0 if there is no such part.
  std::int64_t micro_batches(Part part) const;
  /// As training().
  unit::Batch held_out(Part part, std::int64_t leaf);

  /// Number of steps of the settings: max_steps, or the steps of num_epochs if fewer. Throws zs::Error if the text does
  /// not fill one.
  std::int64_t steps() const;
  /// "max_steps 120 is ..." if max_steps ends a training before the requested epochs, else "".
  std::string cut_short() const;
  /// The epoch in which a step begins, from 1.
  std::int64_t epoch(std::int64_t step) const { return loader_.epoch(step) + 1; }
  std::int64_t samples_per_step() const { return samples_per_step_; }
  double steps_per_epoch() const {
    return static_cast<double>(split_.training->size()) / static_cast<double>(samples_per_step());
  }
  /// Number of passes over the training samples in `steps` steps, possibly fractional.
  double epochs(std::int64_t steps) const { return static_cast<double>(steps) / steps_per_epoch(); }
  const data::Split& data() const { return split_; }
  /// Labels of the model; 0 for text.
  std::size_t labels() const { return labels_; }

 private:
  Settings settings_;
  std::vector<std::int64_t> shape_;  // of a sample's inputs
  data::Split split_;
  std::size_t labels_;
  std::int64_t samples_per_step_;
  std::map<Part, std::int64_t> held_out_targets_;  // of parts with padding
  data::Loader loader_;
  /// The newest micro-batch that was cut into chunks: its other chunks need no reading.
  struct Newest {
    std::int64_t from = -1, number = -1;  // step or part, and place in it
    unit::Batch batch{};
  };
  Newest trained_, held_out_;

  const data::Dataset* of(Part part) const;
  unit::Batch batch(data::Samples samples) const;
  unit::Batch leaf(std::int64_t leaf, Newest& newest, std::int64_t from,
                   const std::function<unit::Batch(std::int64_t number)>& read) const;
  std::int64_t steps_of_epochs() const;
};

}  // namespace zs::setup
