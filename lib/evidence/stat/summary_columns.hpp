// SPDX-License-Identifier: Apache-2.0
// The columns of a summary and of its table "runs", one row each. Code that writes, reads, prints, draws or describes a
// summary is a filter over them. Add new rows at the end: files keep the order of the old ones.
#pragma once
#include "stat/column.hpp"
#include "stat/divergence.hpp"
#include "stat/memory.hpp"
#include "stat/work.hpp"

namespace zs::stat {

using SummaryColumn = ColumnOf<Work>;

// clang-format off
inline constexpr auto kSummaryColumns = std::to_array<SummaryColumn>({
    {.name = "condition", .text = [](const Work& w) { return w.condition.name; }, .meaning = "its name", .table = "condition"},
    {.name = "runs", .kind = Kind::count, .whole = [](const Work& w) { return count(w.condition.members.size()); }, .table = "runs"},
    {.name = "points", .kind = Kind::count, .whole = [](const Work& w) { return count(w.points); }, .meaning = "the number of runs, and of logged steps of all of them", .table = "points", .report = "points", .digits = 6},
    {.name = "status", .text = [](const Work& w) { return std::string(name(w.worst().judgement.status)); }, .meaning = "of the worst run, as zs-aggregate(1) has it", .table = "status"},
    {.name = "first_loss", .kind = Kind::loss, .real = [](const Work& w) { return mean_of(w.firsts); }, .report = "first", .digits = 7},
    {.name = "final_loss", .kind = Kind::loss, .real = [](const Work& w) { return mean_of(w.finals); }, .meaning = "for several runs, the mean", .label = "final loss", .table = "final loss", .report = "final", .digits = 7, .better = Better::low},
    {.name = "best_loss", .kind = Kind::loss, .real = [](const Work& w) { return or_absent(w.losses, least(w.losses)); }, .meaning = "the lowest of all points", .label = "best loss", .table = "best loss", .report = "best", .digits = 7, .better = Better::low},
    {.name = "mean_loss", .kind = Kind::loss, .real = [](const Work& w) { return mean_of(w.losses); }, .meaning = "the mean of all points", .label = "mean loss", .report = "mean", .digits = 7, .better = Better::low},
    {.name = "final_step", .kind = Kind::count, .whole = [](const Work& w) { return w.last_step; }, .meaning = "the last step reached"},
    {.name = "valid_loss", .kind = Kind::loss, .real = [](const Work& w) { return mean_of(w.valids); }, .meaning = "the last one; for several runs, the mean", .label = "validation loss", .table = "valid loss", .report = "validation", .digits = 7, .better = Better::low},
    {.name = "time_points", .kind = Kind::count, .whole = [](const Work& w) { return count(w.times.size()); }, .meaning = "points whose time counts: after the warm-up, without those that --outliers left out", .report = "points", .digits = 6},
    {.name = "time_mean", .kind = Kind::seconds, .real = [](const Work& w) { return mean_of(w.means); }, .meaning = "for several runs, the mean of their means", .label = "mean iteration time", .table = "time (95 %)", .report = "mean", .better = Better::low},
    {.name = "time_median", .kind = Kind::seconds, .real = [](const Work& w) { return or_absent(w.times, median(w.times)); }, .table = "median", .report = "median"},
    {.name = "time_std", .kind = Kind::seconds, .real = [](const Work& w) { return w.times.size() < 2 ? metric::absent_real() : deviation(w.times, w.rule.deviation); }, .meaning = "over all points that count; the standard deviation is that of a sample, unless --deviation says otherwise", .report = "deviation", .digits = 2},
    {.name = "time_low", .kind = Kind::seconds, .real = [](const Work& w) { return finite_or_absent(mean_interval(w.means).low); }},
    {.name = "time_high", .kind = Kind::seconds, .real = [](const Work& w) { return finite_or_absent(mean_interval(w.means).high); }, .meaning = "95 % interval of the mean by Student's t: over the points of one run, over the means of several"},
    {.name = "peak_mem", .kind = Kind::bytes, .whole = [](const Work& w) { return rounded(largest(w.condition, &Series::peak_mem)); }, .label = "peak memory of a rank", .table = "peak memory", .report = "peak", .better = Better::low},
    {.name = "alloc_mem", .kind = Kind::bytes, .whole = [](const Work& w) { return rounded(largest(w.condition, &Series::alloc_mem)); }, .meaning = "the largest of all ranks, runs and steps", .report = "allocated"},
    {.name = "tokens_per_second", .kind = Kind::rate, .real = [](const Work& w) { return rate(w.condition, false); }, .meaning = "as the runs log it, else tokens over time of the points that count", .label = "tokens", .table = "tokens/s", .report = "tokens", .better = Better::high},
    {.name = "images_per_second", .kind = Kind::rate, .real = [](const Work& w) { return rate(w.condition, true); }, .meaning = "the same for images; present if a run counts them", .label = "images", .table = "images/s", .report = "images", .better = Better::high, .optional = true},
    {.name = "comm_bytes", .kind = Kind::bytes, .whole = [](const Work& w) { return rounded(comm_bytes(w.condition)); }, .meaning = "bytes that a rank sends in a step; the median", .report = "sent by a rank in a step"},
    {.name = "state_digest", .text = [](const Work& w) { return state_digest(w.condition); }, .meaning = "if all runs have the same one, else empty", .table = "state digest"},
    {.name = "reason", .text = [](const Work& w) { return reason(w); }, .meaning = "why the status is not COMPLETE, with the place", .table = "reason"},
    {.name = "time_mean_low", .kind = Kind::seconds, .real = [](const Work& w) { return finite_or_absent(w.mean_rounds.low); }},
    {.name = "time_mean_high", .kind = Kind::seconds, .real = [](const Work& w) { return finite_or_absent(w.mean_rounds.high); }},
    {.name = "time_median_low", .kind = Kind::seconds, .real = [](const Work& w) { return finite_or_absent(w.median_rounds.low); }},
    {.name = "time_median_high", .kind = Kind::seconds, .real = [](const Work& w) { return finite_or_absent(w.median_rounds.high); }, .meaning = "bootstrap 95 % intervals; if there are several runs, whole runs are drawn: of the mean their means, of the median their points"},
    {.name = "time_mad", .kind = Kind::seconds, .real = [](const Work& w) { return finite_or_absent(mad(w.times)); }, .meaning = "median absolute deviation, times 1.4826"},
    {.name = "time_min", .kind = Kind::seconds, .real = [](const Work& w) { return finite_or_absent(quantile(w.times, 0)); }},
    {.name = "time_q10", .kind = Kind::seconds, .real = [](const Work& w) { return finite_or_absent(quantile(w.times, 0.1)); }},
    {.name = "time_q90", .kind = Kind::seconds, .real = [](const Work& w) { return finite_or_absent(quantile(w.times, 0.9)); }},
    {.name = "time_q99", .kind = Kind::seconds, .real = [](const Work& w) { return finite_or_absent(quantile(w.times, 0.99)); }},
    {.name = "time_max", .kind = Kind::seconds, .real = [](const Work& w) { return finite_or_absent(quantile(w.times, 1)); }, .meaning = "quantiles, linear between points"},
    {.name = "warmup_points", .kind = Kind::count, .whole = [](const Work& w) { return w.sum([](const Member& m) { return m.timing.warmup; }); }, .meaning = "points left out at the start, over all runs"},
    {.name = "time_outliers", .kind = Kind::count, .whole = [](const Work& w) { return w.sum([](const Member& m) { return m.timing.marked; }); }},
    {.name = "time_removed", .kind = Kind::count, .whole = [](const Work& w) { return w.sum([](const Member& m) { return m.timing.removed; }); }, .meaning = "times found to be outliers, and those of them left out"},
    {.name = "replaced_points", .kind = Kind::count, .whole = [](const Work& w) { return w.sum([](const Member& m) { return m.series.replaced; }); }, .meaning = "points that a restarted run logged again"},
    {.name = "smoothed_loss", .kind = Kind::loss, .real = [](const Work& w) { return mean_of(w.smoothed); }, .meaning = "the last value of the exponential mean with weight 0.9"},
    {.name = "loss_area", .kind = Kind::loss, .real = [](const Work& w) { return mean_of(w.heights); }, .meaning = "area under the loss curve over its steps"},
    {.name = "steps_to_target", .kind = Kind::plain, .real = [](const Work& w) { return mean_of(w.reached, w.finals.size()); }, .meaning = "the first step with a loss of at most --target; absent if a run does not reach it"},
    {.name = "final_loss_std", .kind = Kind::loss, .real = [](const Work& w) { return w.finals.size() < 2 ? metric::absent_real() : deviation(w.finals); }, .meaning = "standard deviation between runs"},
    {.name = "final_loss_low", .kind = Kind::loss, .real = [](const Work& w) { return finite_or_absent(mean_interval(w.finals).low); }},
    {.name = "final_loss_high", .kind = Kind::loss, .real = [](const Work& w) { return finite_or_absent(mean_interval(w.finals).high); }, .meaning = "95 % interval of the mean over the runs"},
    {.name = "tokens_per_step", .kind = Kind::count, .whole = [](const Work& w) { return rounded(tokens_per_step(w.condition)); }, .meaning = "if all points agree"},
    {.name = "world_size", .kind = Kind::count, .whole = [](const Work& w) { return shared_integer(w.condition, "world_size"); }, .meaning = "number of ranks, if all runs agree"},
    {.name = "ideal_mem", .kind = Kind::bytes, .whole = [](const Work& w) { return rounded(ideal_state_bytes(*w.condition.members.front().run)); }, .meaning = "bytes per rank for parameters, gradients and optimizer state: the lower bound of peak_mem"},
    {.name = "loss_spread", .kind = Kind::loss, .real = [](const Work& w) { return spread(w.curve); }, .meaning = "the largest distance between runs at one step"},
    {.name = "scaling_efficiency", .kind = Kind::plain, .real = [](const Work& w) { return w.efficiency; }, .meaning = "tokens (or images) per second and rank, over those of the condition with the fewest ranks and otherwise the same setup"},
    {.name = "time_total", .kind = Kind::seconds, .real = [](const Work& w) { return mean_of(w.durations); }, .meaning = "time of all steps: a logged one stands for those since the logged one before it; for several runs, the mean", .label = "time of all steps"},
    {.name = "tokens_per_second_q05", .kind = Kind::rate, .real = [](const Work& w) { return finite_or_absent(quantile(w.rates, 0.05)); }, .meaning = "tokens per second that 95 of 100 points reach: what the slow steps leave", .label = "tokens, the slowest 5 %", .better = Better::high},
});
// clang-format on

struct RunWork {
  const Condition& condition;
  const Member& member;
};
using RunColumn = ColumnOf<RunWork>;

// clang-format off
inline constexpr auto kRunColumns = std::to_array<RunColumn>({
    {.name = "condition", .text = [](const RunWork& w) { return w.condition.name; }},
    {.name = "run", .text = [](const RunWork& w) { return w.member.run->name; }, .meaning = "their names"},
    {.name = "status", .text = [](const RunWork& w) { return std::string(name(w.member.judgement.status)); }},
    {.name = "reason", .text = [](const RunWork& w) { return w.member.judgement.reason; }, .meaning = "its state and the reason"},
    {.name = "points", .kind = Kind::count, .whole = [](const RunWork& w) { return count(w.member.series.points.size()); }},
    {.name = "replaced_points", .kind = Kind::count, .whole = [](const RunWork& w) { return count(w.member.series.replaced); }, .meaning = "logged steps, and those that a restarted run logged again"},
    {.name = "final_loss", .kind = Kind::loss, .real = [](const RunWork& w) { return last_of(w.member.series, &Point::loss); }, .meaning = "the last one"},
    {.name = "valid_loss", .kind = Kind::loss, .real = [](const RunWork& w) { return last_of(w.member.series, &Point::valid_loss); }, .meaning = "the last one"},
    {.name = "peak_mem", .kind = Kind::bytes, .whole = [](const RunWork& w) { return rounded(w.member.series.peak_mem); }, .meaning = "the largest of all ranks and steps"},
    {.name = "time_given", .kind = Kind::count, .whole = [](const RunWork& w) { return count(w.member.timing.given); }},
    {.name = "warmup_points", .kind = Kind::count, .whole = [](const RunWork& w) { return count(w.member.timing.warmup); }, .meaning = "points that have a time, and those of them left out at the start"},
    {.name = "time_outliers", .kind = Kind::count, .whole = [](const RunWork& w) { return count(w.member.timing.marked); }},
    {.name = "time_removed", .kind = Kind::count, .whole = [](const RunWork& w) { return count(w.member.timing.removed); }, .meaning = "outliers among the rest, and those of them left out"},
    {.name = "time_points", .kind = Kind::count, .whole = [](const RunWork& w) { return count(w.member.timing.seconds.size()); }},
    {.name = "time_mean", .kind = Kind::seconds, .real = [](const RunWork& w) { return mean_of(w.member.timing.seconds); }},
    {.name = "time_median", .kind = Kind::seconds, .real = [](const RunWork& w) { return or_absent(w.member.timing.seconds, median(w.member.timing.seconds)); }},
    {.name = "time_min", .kind = Kind::seconds, .real = [](const RunWork& w) { return or_absent(w.member.timing.seconds, quantile(w.member.timing.seconds, 0)); }},
    {.name = "time_max", .kind = Kind::seconds, .real = [](const RunWork& w) { return or_absent(w.member.timing.seconds, quantile(w.member.timing.seconds, 1)); }, .meaning = "points that count, and their times in s"},
});
// clang-format on

}  // namespace zs::stat
