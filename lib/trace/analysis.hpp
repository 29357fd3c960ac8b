// SPDX-License-Identifier: Apache-2.0
// What traces say: where the time went, who waited for whom. The definitions, and so the figures, are those of Holistic
// Trace Analysis. Times are in microseconds.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "trace/answer.hpp"
#include "trace/trace.hpp"

namespace zs::trace {

struct Analysis {
  std::string_view name, what;  ///< for --show; what it answers
  Answer (*run)(const std::vector<Trace>& traces, const Settings& settings);
};

/// All of them, in the order in which they are told.
const std::vector<Analysis>& analyses();

/// For each operation of two sets of traces: how often, and how long, and what that differs by.
Answer difference(const std::vector<Trace>& control, const std::vector<Trace>& test, const Settings& settings);

}  // namespace zs::trace
