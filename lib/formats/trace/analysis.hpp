// SPDX-License-Identifier: Apache-2.0
// What traces say: where the time went, who waited for whom. The definitions, and so the figures, are those of Holistic
// Trace Analysis. Times are in microseconds.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/sheet.hpp"
#include "trace/critical_path.hpp"
#include "trace/sums.hpp"
#include "trace/trace.hpp"

namespace zs::trace {

/// What the analyses look at, and what several of them need, which is made once. The traces outlive it.
class Question {
 public:
  explicit Question(const std::vector<Trace>& traces, double kernel_delay = Settings().kernel_delay)
      : traces_(&traces), kernel_delay_(kernel_delay) {}

  const std::vector<Trace>& traces() const { return *traces_; }
  double kernel_delay() const { return kernel_delay_; }
  /// The critical path of each trace.
  const std::vector<std::vector<Stretch>>& paths() const;

 private:
  const std::vector<Trace>* traces_;
  double kernel_delay_;
  mutable std::vector<std::vector<Stretch>> paths_;
};

/// Answers with at most `most` rows of names.
struct Analysis {
  std::string_view name, what;  ///< for --show; what it answers
  Sheet (*run)(const Question& question, std::size_t most);
};

/// All of them, in the order in which they are told.
const std::vector<Analysis>& analyses();

/// For each operation of two sets of traces: how often, and how long, and what that differs by.
Sheet difference(const std::vector<Trace>& control, const std::vector<Trace>& test, const Settings& settings);

}  // namespace zs::trace
