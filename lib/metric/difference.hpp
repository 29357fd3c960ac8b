// SPDX-License-Identifier: Apache-2.0
// Where two series of records part.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "metric/table.hpp"

namespace zs::metric {

struct Difference {
  std::int64_t compared = 0;         ///< steps at which both have a value
  std::optional<std::int64_t> step;  ///< the first of these at which the values are not the same bits; nan equals nan
  std::string a, b;                  ///< the values there
};

/// Compares a column by step. Where a step is recorded more than once, the last record counts, as after a resume.
Difference difference(const Table& a, const Table& b, std::string_view column);

}  // namespace zs::metric
