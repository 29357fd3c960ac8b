// SPDX-License-Identifier: Apache-2.0
// Analyses of traces: where time is spent, and which rank the others wait for. Definitions and figures are the same as
// in Holistic Trace Analysis. Times are in microseconds.
#pragma once
#include <vector>

#include "base/sheet.hpp"
#include "trace/critical_path.hpp"
#include "trace/sums.hpp"
#include "trace/trace.hpp"

namespace zs::trace {

/// The input of the analyses, with shared intermediate results, computed once. The traces must outlive it.
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
  std::string_view name, what;  ///< name for --show; the question it answers
  Sheet (*run)(const Question& question, std::size_t most);
};

/// All analyses, in the order of the output.
const std::vector<Analysis>& analyses();

/// For each operation of two sets of traces: its count and time, and their differences.
Sheet difference(const std::vector<Trace>& control, const std::vector<Trace>& test, const Settings& settings);

}  // namespace zs::trace
