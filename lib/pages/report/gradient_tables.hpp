// SPDX-License-Identifier: Apache-2.0
// The tables of the report of gradients, each a section.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gradient/finding.hpp"
#include "metric/table.hpp"
#include "report/document.hpp"

namespace zs::report {

/// The trainings that checkpoints are of, as the metrics.h5 beside them has them; each file is read once.
class LoggedRuns {
 public:
  explicit LoggedRuns(const gradient::History& history);
  /// Null where the checkpoint stands alone.
  const metric::Run* of(const gradient::Source& source) const;

 private:
  std::map<std::string, metric::Run> runs_;  // by folder
};

/// What the training logged for each checkpoint, and which of them it does not fit.
struct LoggedNorms {
  std::vector<double> norms;  ///< nan where nothing was logged
  std::vector<bool> known;
  std::vector<std::size_t> unlike;
  std::size_t compared = 0;
};

/// A number to three digits; "-" where it is nan.
Cell angle(double value);
/// The layers at the last checkpoint.
Section layer_section(const gradient::History& history, const std::vector<gradient::Finding>& findings);
/// The checkpoints, the norms of the layers at them, and what was left out.
Section checkpoint_section(const gradient::History& history, const LoggedNorms& log);
/// Cosines between consecutive checkpoints. REQUIRES: two checkpoints or more.
Section direction_section(const gradient::History& history);
/// Cosines between layers of one shape at the last checkpoint; nothing where there are no two.
std::optional<Section> between_section(const gradient::History& history);
/// How norms go with the losses that the training logged; nothing of fewer than three checkpoints, or without losses.
std::optional<Section> loss_relation_section(const gradient::History& history, const LoggedRuns& runs);
/// Every tensor at the last checkpoint.
Section tensor_section(const gradient::History& history);

}  // namespace zs::report
