// SPDX-License-Identifier: Apache-2.0
// The tables of the report on gradients, each a section.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gradient/finding.hpp"
#include "metric/table.hpp"
#include "report/document.hpp"

namespace zs::report {

/// The trainings of checkpoints, read from metrics.h5 next to them; each file is read once.
class LoggedRuns {
 public:
  explicit LoggedRuns(const gradient::History& history);
  /// Null if the checkpoint has no metrics.h5.
  const metric::Run* of(const gradient::Source& source) const;

 private:
  std::map<std::string, metric::Run> runs_;  // by folder
};

/// The gradient norm that the training logged for each checkpoint, and the checkpoints that disagree with it.
struct LoggedNorms {
  std::vector<double> norms;  ///< nan if nothing was logged
  std::vector<bool> known;
  std::vector<std::size_t> unlike;
  std::size_t compared = 0;
};

/// A number with three digits; "-" for nan.
Cell angle(double value);
/// The layers at the last checkpoint.
Section layer_section(const gradient::History& history, const std::vector<gradient::Finding>& findings);
/// The checkpoints, the norms of the layers at them, and which were left out.
Section checkpoint_section(const gradient::History& history, const LoggedNorms& log);
/// Cosines between consecutive checkpoints. REQUIRES: two checkpoints or more.
Section direction_section(const gradient::History& history);
/// Cosines between layers of equal shape at the last checkpoint; nothing without two of them.
std::optional<Section> between_section(const gradient::History& history);
/// The relation of norms to logged losses; nothing with fewer than three checkpoints, or without losses.
std::optional<Section> loss_relation_section(const gradient::History& history, const LoggedRuns& runs);
/// Every tensor at the last checkpoint.
Section tensor_section(const gradient::History& history);

}  // namespace zs::report
