// SPDX-License-Identifier: Apache-2.0
// Numbers that describe how far two distributions are apart, from the tokens that one of them drew. d is the
// generator's log-probability minus the trainer's, w = exp(-d) the importance ratio.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "rollout/tokens.hpp"

namespace zs::rollout {

struct Estimate {
  std::size_t tokens = 0, equal = 0;                     ///< equal: in bits
  double mean_abs = 0, p99 = 0, max = 0;                 ///< of |d|
  double free = 0;                                       ///< mean 1 - p
  double bias = 0, bias_error = 0;                       ///< mean d, which is k1, and its standard error
  double k2 = 0, k3 = 0;                                 ///< mean d^2 / 2; mean of w - 1 + d
  double mean_w = 1, w_error = 0, ess = 1, outside = 0;  ///< ess: mean(w)^2 / mean(w^2); outside: of 0.9..1.1
  double pearson = 1;                                    ///< of the probabilities
};

/// `beyond`: the share of tokens whose |d| is larger than p99.
Estimate estimate(const std::vector<Token>& tokens, double beyond = 0.01);

/// The metrics that a system logs, recomputed: its own name and the value.
std::vector<std::pair<std::string, double>> metrics(const Tokens& tokens, const std::string& system);

}  // namespace zs::rollout
