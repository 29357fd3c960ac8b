// SPDX-License-Identifier: Apache-2.0
// Configurations for training a model on a cluster, and their predicted costs: stages, hpZ, accumulation.
#pragma once
#include <string>
#include <vector>

#include "plan/cost.hpp"

namespace zs::plan {

struct Cluster {
  int nodes = 1, gpus_per_node = 1;
  Network network{};               ///< between nodes; `node` is gpus_per_node
  double memory = 0;               ///< limit for bytes of a rank; 0: none
  std::vector<int> accumulations;  ///< micro-steps to consider
};

struct Candidate {
  int nodes = 1;
  Shape shape;
  Prediction predicted;
  std::string noun;     ///< the unit of the rate: "tokens", or "images"
  double rate = 0;      ///< per second, of all ranks
  std::string why_not;  ///< it does not fit, or cannot be predicted; "" if it can be trained
};

/// All configurations that the profiles can predict, the fastest that fits first. For offload and checkpointing each
/// profile counts only as it was measured. Throws zs::Error if profiles are of several models, or if none has measured
/// communication between ranks. REQUIRES: a profile.
std::vector<Candidate> candidates(const std::vector<Profile>& profiles, const Cluster& cluster);

/// "stage 3, hpZ 8, offload of optimizer state", and the same with ", 4 micro-steps".
std::string way(const Shape& shape);
std::string to_text(const Shape& shape);

}  // namespace zs::plan
