// SPDX-License-Identifier: Apache-2.0
// The report of a run's gradients: which layers vanish or explode, where they point, what every tensor has.
#pragma once
#include "gradient/history.hpp"
#include "report/document.hpp"
#include "report/write.hpp"

namespace zs::report {

/// The verdict is bad where a layer's gradient is not finite, zero, vanishing or exploding by gradient::findings at any
/// checkpoint, and where its norm is not what the training logged (metrics.h5 beside the checkpoint); else good.
/// Throws Error where metrics.h5 is there and cannot be read.
/// What programs read is made only for the format that asks for it.
Document gradients(const gradient::History& history, Format format = Format::markdown);

}  // namespace zs::report
