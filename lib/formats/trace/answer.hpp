// SPDX-License-Identifier: Apache-2.0
// What an analysis of traces is asked with, and what it answers.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace zs::trace {

/// A table: cells are numbers as text, exact, or names.
struct Answer {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

struct Settings {
  double kernel_delay = 30;  ///< us: a shorter gap behind a kernel is its successor's, not somebody's
  std::size_t most = 10;     ///< rows of a table of names
};

}  // namespace zs::trace
