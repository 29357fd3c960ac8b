// SPDX-License-Identifier: Apache-2.0
// Which samples belong to which micro-batch of a training: the same for every stage, rank count and checker.
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

/// What is held out of training.
enum class Part { validation, test };

class Batches {
 public:
  /// Reads the data set. A step has `leaves` micro-batches, all ranks together. Throws zs::Error where data, model
  /// and sequence length do not suit.
  Batches(const Settings& settings, const model::Model& model, std::int64_t leaves);

  /// The micro-batch of a leaf of a step, which counts from 1.
  unit::Batch training(std::int64_t step, std::int64_t leaf);
  /// Tokens that a step learns to tell, all leaves together: the targets that are no padding.
  std::int64_t tokens(std::int64_t step) const;
  /// Micro-batches of what is held out, each sample once; the last may be smaller. 0 where there is no such part.
  std::int64_t leaves(Part part) const;
  unit::Batch held_out(Part part, std::int64_t leaf) const;

  /// Steps that the settings ask for: max_steps, or those of num_epochs if they are fewer. Throws zs::Error if the text
  /// does not fill one.
  std::int64_t steps() const;
  /// "max_steps 120 is ..." where max_steps ends a training before the epochs that were asked for, else "".
  std::string cut_short() const;
  /// The epoch that a step begins in, from 1.
  std::int64_t epoch(std::int64_t step) const { return loader_.epoch(step) + 1; }
  std::int64_t samples_per_step() const { return samples_per_step_; }
  double steps_per_epoch() const {
    return static_cast<double>(split_.training->size()) / static_cast<double>(samples_per_step());
  }
  /// Passes over the training samples in so many steps, the last perhaps in part.
  double epochs(std::int64_t steps) const { return static_cast<double>(steps) / steps_per_epoch(); }
  const data::Split& data() const { return split_; }
  /// Labels of the model; 0 of text.
  std::size_t labels() const { return labels_; }

 private:
  Settings settings_;
  std::vector<std::int64_t> shape_;  // of a sample's inputs
  data::Split split_;
  std::size_t labels_;
  std::int64_t samples_per_step_;
  std::map<Part, std::int64_t> held_out_targets_;  // of parts with padding
  data::Loader loader_;

  const data::Dataset* of(Part part) const;
  unit::Batch batch(data::Samples samples) const;
  std::int64_t steps_of_epochs() const;
};

}  // namespace zs::setup
