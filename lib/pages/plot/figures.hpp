// SPDX-License-Identifier: Apache-2.0
// The figures of a summary. Each throws Error, naming what is missing, if the summary lacks its data.
#pragma once
#include <string>
#include <vector>

#include "figure/figure.hpp"
#include "summary/condition.hpp"
#include "summary/unit.hpp"

namespace zs::plot {

using figure::Bar;
using figure::Cell;
using figure::Figure;
using figure::Ink;
using figure::kNone;
using figure::Panel;
using figure::Range;
using figure::Series;
using summary::Condition;
using summary::Unit;

/// Options of the user. Each figure uses those that concern it.
struct Options {
  /// Curves: the mean of this number of logged points around each; 1 does not smooth, 0 chooses by their number.
  std::size_t smooth = 0;
  bool log = false;               ///< curves: a logarithmic value axis
  bool log_x = false;             ///< curve: a logarithmic axis of steps, time, tokens or epochs
  std::string x_axis = "step";    ///< curves: "step", "tokens", "images", "time" or "epoch"
  std::string baseline{};         ///< difference, revision: the condition to compare with; "" is the first
  std::string rows{}, columns{};  ///< sweep: the attributes of the map's axes; "" chooses those that differ
  /// Sweep: the result to show; "" is valid_loss if all have one, else final_loss. Curve: the column.
  std::string value{};
  bool deviation = false;  ///< bars of times: error bars are the standard deviation instead of the interval
  std::string warmup{};    ///< bars of times: the summary's note about left-out points
  double gate = 0.03;      ///< revision: a ratio within this distance of 1 counts as good
};

/// The look of a condition in all figures of these conditions: the stage sets the hue, compiled ones are strong; else
/// each has a hue. If there are more than colours, the five with the lowest final losses have one, others are grey.
struct Look {
  Ink ink;
  bool rest = false;
};
std::vector<Look> looks(const std::vector<Condition>& conditions);

/// A curve per condition: the loss.
Figure loss_figure(const std::vector<Condition>& conditions, const Options& options = {});
/// A curve per condition: any column of the records. Throws UsageError if none has it.
Figure curve_figure(const std::vector<Condition>& conditions, const Options& options);
/// Whether the loss curves are unequal but so close that their difference shows more.
bool nearly_equal(const std::vector<Condition>& conditions);
/// A curve per condition: its loss minus the baseline's at the same step.
Figure difference_figure(const std::vector<Condition>& conditions, const Options& options = {});
/// Bars: mean iteration time with its 95 % interval.
Figure time_figure(const std::vector<Condition>& conditions, const Options& options = {});
/// Boxes: the distribution of iteration times: quartiles, the 5 and 95 % quantiles, and all points beyond these.
Figure distribution_figure(const std::vector<Condition>& conditions, const Options& options = {});
Figure memory_figure(const std::vector<Condition>& conditions, const Options& options = {});
/// Bars: tokens, or images, per second, with the interval that follows from the interval of the time.
Figure throughput_figure(const std::vector<Condition>& conditions, const Options& options = {});
/// Throughput and efficiency over the number of ranks; a curve for conditions that differ only in that.
Figure scaling_figure(const std::vector<Condition>& conditions, const Options& options = {});
/// The ratios of time and memory to a baseline with their intervals, and the loss curves. Throws UsageError at an
/// unknown baseline.
Figure revision_figure(const std::vector<Condition>& conditions, const Options& options = {});
/// A heat map of one result over two attributes, or bars over one; the best is marked.
Figure sweep_figure(const std::vector<Condition>& conditions, const Options& options = {});

/// Bars: the total time of all steps of a run; for several runs the mean.
Figure duration_figure(const std::vector<Condition>& conditions, const Options& options);

}  // namespace zs::plot
