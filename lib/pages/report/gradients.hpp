// SPDX-License-Identifier: Apache-2.0
// The report on a run's gradients: which layers vanish or explode, their directions, and figures of every tensor.
#pragma once
#include "gradient/history.hpp"
#include "report/document.hpp"
#include "report/write.hpp"

namespace zs::report {

/// The verdict is bad if a layer's gradient is not finite, zero, vanishing or exploding by gradient::findings at any
/// checkpoint, or if its norm differs from the one the training logged (metrics.h5 next to the checkpoint); else good.
/// Throws Error if metrics.h5 exists but cannot be read. The data for programs is made only for the format that
/// contains it.
Document gradients(const gradient::History& history, Format format = Format::markdown);

}  // namespace zs::report
