// SPDX-License-Identifier: Apache-2.0
// Repeats the same steps of one training from the same state and finds the first unit and operation whose bits differ
// from the first repetition's. It uses no reference: a training is compared with itself.
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
  std::int64_t results = 0;    ///< results of operations: a unit's output, a gathered parameter, a gradient ...
  std::int64_t differing = 0;  ///< of these: different from the first repetition's
};

/// The result of all repetitions.
struct Repeated {
  compare::Settled kind{};  ///< exact, different or failed (`reason`)
  std::string reason{};
  std::int64_t repetitions = 0, differing = 0;  ///< total; different from the first
  std::int64_t steps = 0, results = 0;          ///< per repetition
  /// The place of the first different result in the order of a step, over all repetitions.
  struct Place {
    std::int64_t repetition = 0, step = 0;
    Phase phase{};
    What what{};
    std::string unit{}, parameter{};  ///< parameter "": the whole unit
    std::int64_t leaf = -1;           ///< micro-batch of the step, if it belongs to one
    int rank = 0;
  } first{};
};

/// Trains request.train.max_steps steps `times` times. An injected fault acts only in the last repetition. Calls `seen`
/// on every rank with the same content. Throws as SideBySide does. COLLECTIVE.
Repeated repeat(comm::Group& group, const Request& request, std::int64_t times,
                const std::function<void(const Repetition&)>& seen);

/// The verdict and its details.
Lines lines(const Repeated& repeated, const comm::Group& group);

/// The heading and a line of the table of repetitions, and its row in the records.
std::string repetitions_header();
std::string to_text(const Repetition& repetition);
void add(metric::Table& records, const Repetition& repetition, const std::string& loss_unit);

}  // namespace zs::verify
