// SPDX-License-Identifier: Apache-2.0
// The same steps of one training again and again, each time from the same state: the first unit and operation whose
// bits differ from the first time's. No reference: a training is compared with itself.
#pragma once
#include <functional>
#include <string>

#include "metric/table.hpp"
#include "verify/report.hpp"
#include "verify/side_by_side.hpp"

namespace zs::verify {

/// One repetition, over all ranks.
struct Repetition {
  std::int64_t number = 1;     ///< from 1
  double loss = 0;             ///< of its last step
  std::int64_t results = 0;    ///< of operations: a unit's output, a parameter gathered, a gradient ...
  std::int64_t differing = 0;  ///< of them, from the first repetition's
};

/// What the repetitions came to.
struct Repeated {
  compare::Settled kind{};  ///< exact, different or failed (`reason`)
  std::string reason{};
  std::int64_t repetitions = 0, differing = 0;  ///< how many there were; how many differ from the first
  std::int64_t steps = 0, results = 0;          ///< of one repetition
  /// Of the result that differs first in the order of a step, of all repetitions.
  struct Place {
    std::int64_t repetition = 0, step = 0;
    Phase phase{};
    What what{};
    std::string unit{}, parameter{};  ///< parameter "": of the whole unit
    std::int64_t leaf = -1;           ///< micro-batch of the step, where it is of one
    int rank = 0;
  } first{};
};

/// Trains request.train.max_steps steps `times` times. A fault of the request strikes in the last repetition alone.
/// `seen` is called on every rank with the same content. Throws as SideBySide does. COLLECTIVE.
Repeated repeat(comm::Group& group, const Request& request, std::int64_t times,
                const std::function<void(const Repetition&)>& seen);

/// The verdict and what belongs to it.
Lines lines(const Repeated& repeated, const comm::Group& group);

/// The heading and a line of the table of repetitions, and its row in the records.
std::string repetitions_header();
std::string to_text(const Repetition& repetition);
void add(metric::Table& records, const Repetition& repetition, const std::string& loss_unit);

}  // namespace zs::verify
