// SPDX-License-Identifier: Apache-2.0
// The reports and the sections of them that have a source each. Each throws Error if its data are damaged.
#pragma once
#include <string>
#include <vector>

#include "gradient/history.hpp"
#include "plot/figures.hpp"
#include "report/comparison.hpp"
#include "report/document.hpp"
#include "report/findings.hpp"
#include "report/write.hpp"
#include "rollout/answer.hpp"
#include "summary/result.hpp"
#include "trace/trace.hpp"

namespace zs::report {

// The report on revisions of one training: whether numbers and speed are the same.

/// Throws as compare() does.
Document revision(const metric::Store& store, const Findings& found, const std::string& source,
                  const std::string& folder, const Gate& gate);

/// The comparison as JSON, which is in the document of revision(): the verdict, each answer with its numbers, and every
/// run with its record. Numbers that are not finite are null.
std::string to_json(const Comparisons& comparisons, const Findings& found, const Gate& gate);

// The report on a sweep: many conditions, a few parameters, and which is best.

/// The result: "3.2104"; of several runs also their standard deviation and number: "3.2104 ± 0.0021 (6 runs)".
std::string with_spread(const Condition& condition, const summary::Result& result);

/// `options` name the result to judge by, and the rows and columns of the map, if the user chose them. Throws
/// UsageError at an unknown one, Error if no condition has the result.
Document sweep(const metric::Store& store, const Findings& found, const std::string& source, const std::string& folder,
               const plot::Options& options);

// The report on a run's gradients: which layers vanish or explode, their directions, and figures of every tensor.

/// The verdict is bad if a layer's gradient is not finite, zero, vanishing or exploding by gradient::findings at any
/// checkpoint, or if its norm differs from the one the training logged (metrics.h5 next to the checkpoint); else good.
/// Throws Error if metrics.h5 exists but cannot be read. The data for programs is made only for the format that
/// contains it.
Document gradients(const gradient::History& history, Format format = Format::markdown);

// The report on log-probabilities of a generator and a trainer: how far apart they are at each step and position, and
// which weights the generator had.

/// Of a dump of both sides, or with `b` of two of one side each; `b` may be "". Throws Error if one is damaged.
Document rollouts(const std::string& a, const std::string& b);

/// The figures of an answer, as a section without words.
Section rollout_section(const rollout::Answer& answer);

// Profiler traces as a separate report or as a section of another.

/// The figure, and a table for each analysis with a result.
Section trace_section(const std::vector<trace::Trace>& traces);

/// A report of that section alone. The verdict is open: a profile is neither right nor wrong.
Document trace(const std::vector<trace::Trace>& traces);

}  // namespace zs::report
