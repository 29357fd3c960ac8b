// SPDX-License-Identifier: Apache-2.0
// Pairs the micro-batches of two sides that have the same samples, in any order and on any rank.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "probe/diagnosis.hpp"

namespace zs::probe {

/// The micro-batches of a step by (rank, number), each with a name that both sides have alike.
std::map<std::pair<int, int>, std::string> names_of_micro_batches(const Step& step, bool by_samples);

/// Whether both sides have recorded the same micro-batches: then each is known by its samples.
bool same_micro_batches(const Step& a, const Step& b);

/// Whether both cut the batch into parts of the same sizes. Otherwise gradients of micro-batches have no partners, and
/// their sums are compared.
bool cut_alike(const Step& a, const Step& b);

/// Contributions of the same samples, or, where these are unknown, of the same rank and micro-batch.
std::vector<std::pair<const Contribution*, const Contribution*>> matched(const Step& a, const Step& b);

/// The same by the direction of the gradients, whatever they are divided by; nothing unless each has a partner.
std::vector<std::pair<const Contribution*, const Contribution*>> along(const Step& a, const Step& b);

}  // namespace zs::probe
