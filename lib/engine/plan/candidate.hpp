// SPDX-License-Identifier: Apache-2.0
// Ways to train a model on a cluster, and what each is predicted to cost: stages, secondary partition, accumulation.
#pragma once
#include <string>
#include <vector>

#include "plan/cost.hpp"

namespace zs::plan {

struct Cluster {
  int nodes = 1, gpus_per_node = 1;
  Network network{};               ///< between nodes; `node` is gpus_per_node
  double memory = 0;               ///< bytes that a rank may fill; 0: no limit
  std::vector<int> accumulations;  ///< micro-steps to look at
};

struct Candidate {
  int nodes = 1;
  Shape shape;
  Prediction predicted;
  std::string noun;     ///< what the rate counts: "tokens", or "images"
  double rate = 0;      ///< in a second, of all ranks
  std::string why_not;  ///< it does not fit, or cannot be predicted; "" where it can be trained
};

/// All ways that the profiles can say something of, the fastest that fits first. Of offload and checkpointing each
/// profile speaks for what it was measured with. Throws zs::Error where profiles are of several models, or none says
/// what travels between ranks. REQUIRES: a profile.
std::vector<Candidate> candidates(const std::vector<Profile>& profiles, const Cluster& cluster);

/// "stage 3, hpZ 8, offload of optimizer state", and the same with ", 4 micro-steps".
std::string way(const Shape& shape);
std::string to_text(const Shape& shape);

}  // namespace zs::plan
