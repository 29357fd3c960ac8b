// SPDX-License-Identifier: Apache-2.0
// The figures that a summary can give. Each throws Error, saying what is missing, where the summary cannot give it.
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

/// What a user may choose. Each figure looks at what concerns it.
struct Options {
  /// Curves: the mean of so many logged points around each; 1 leaves them as they are, 0 chooses by their number.
  std::size_t smooth = 0;
  bool log = false;               ///< curves: a logarithmic axis of values
  bool log_x = false;             ///< curve: a logarithmic axis of steps, time, tokens or epochs
  std::string x_axis = "step";    ///< curves: "step", "tokens", "images", "time" or "epoch"
  std::string baseline{};         ///< difference, revision: the condition to compare with; "" is the first
  std::string rows{}, columns{};  ///< sweep: the attributes that span the map; "" chooses those that differ
  /// Sweep: the result to show; "" is valid_loss where there is one, else final_loss. Curve: the column.
  std::string value{};
  bool deviation = false;  ///< bars of times: error bars are the standard deviation, not the interval
  std::string warmup{};    ///< bars of times: what the summary says about points left out
  double gate = 0.03;      ///< revision: a ratio within so much of 1 is as good
};

/// How a condition looks in every figure of these conditions: stages are hues, what is compiled is strong; else each
/// has a hue. Of more than the palette has, the five with the lowest final losses have one, and the rest is grey.
struct Look {
  Ink ink;
  bool rest = false;
};
std::vector<Look> looks(const std::vector<Condition>& conditions);

/// A curve per condition: the loss.
Figure loss_figure(const std::vector<Condition>& conditions, const Options& options = {});
/// A curve per condition: any column of the records. Throws UsageError where none has it.
Figure curve_figure(const std::vector<Condition>& conditions, const Options& options);
/// Whether the loss curves lie so close to one another, unequal, that their difference shows more than they do.
bool nearly_equal(const std::vector<Condition>& conditions);
/// A curve per condition: its loss minus the baseline's at the same step.
Figure difference_figure(const std::vector<Condition>& conditions, const Options& options = {});
/// Bars: mean iteration time with its 95 % interval.
Figure time_figure(const std::vector<Condition>& conditions, const Options& options = {});
/// Boxes: how iteration times spread: quartiles, the 5 and 95 % quantiles, and all points beyond these.
Figure distribution_figure(const std::vector<Condition>& conditions, const Options& options = {});
/// Bars: the peak memory.
Figure memory_figure(const std::vector<Condition>& conditions, const Options& options = {});
/// Bars: tokens per second, or images, with the interval that follows from that of the time.
Figure throughput_figure(const std::vector<Condition>& conditions, const Options& options = {});
/// Throughput and efficiency over the number of ranks; a curve for all conditions that differ in nothing else.
Figure scaling_figure(const std::vector<Condition>& conditions, const Options& options = {});
/// The ratios of time and memory to a baseline with their intervals, and the loss curves. Throws UsageError at an
/// unknown baseline.
Figure revision_figure(const std::vector<Condition>& conditions, const Options& options = {});
/// A heat map of one result over two attributes, or bars over one; the best is marked.
Figure sweep_figure(const std::vector<Condition>& conditions, const Options& options = {});

}  // namespace zs::plot
