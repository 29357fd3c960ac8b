// SPDX-License-Identifier: Apache-2.0
// Evaluates a model on held-out data.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "comm/group.hpp"
#include "setup/batches.hpp"
#include "zero/engine.hpp"

namespace zs::train {

using setup::Batches;
using setup::Part;

/// Samples, and those whose label had the largest logit, or one of the five largest (ties: the first).
struct Count {
  std::int64_t samples = 0, best = 0, best_five = 0;
  void add(const Count& other) { samples += other.samples, best += other.best, best_five += other.best_five; }
};

struct Evaluation {
  double loss = 0;               ///< mean over samples
  std::vector<Count> classes{};  ///< by label; empty for text
  Count all() const;             ///< of all classes together
  double accuracy() const { return share(all().best, all().samples); }
  double accuracy_of_five() const { return share(all().best_five, all().samples); }
  static double share(std::int64_t part, std::int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  }
};

/// Evaluates a part that has samples, without dropout. `dump`: a file for the logits, or "". COLLECTIVE.
Evaluation evaluate(comm::Group& group, zero::Engine& engine, Batches& batches, Part part, const std::string& dump);

/// The result for a record and an index, by the names of the attribute table: "final_valid_loss", "test_accuracy", ...
/// and, for the last evaluated part, "class_accuracy.NAME".
std::vector<std::pair<std::string, std::string>> facts(const Evaluation& evaluation, Part part,
                                                       const std::vector<std::string>& labels);

/// Lines for a log: loss, perplexity or accuracies, and a table of classes, the worst first.
std::vector<std::string> lines(const Evaluation& evaluation, Part part, const std::vector<std::string>& labels);

}  // namespace zs::train
