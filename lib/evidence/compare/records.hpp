// SPDX-License-Identifier: Apache-2.0
// Compares the records of two runs row by row (rows.hpp), in every column that the training determines.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compare/measure.hpp"
#include "compare/precision.hpp"
#include "compare/rows.hpp"
#include "compare/verdict.hpp"
#include "metric/table.hpp"

namespace zs::compare {

/// The columns that the training determines: they repeat to the last bit. All other columns are about the machine, or
/// unknown.
const std::vector<std::string>& decided();

struct Side {
  std::string name;  ///< in messages
  const metric::Table* records = nullptr;
  std::map<std::string, Precision> precision{};  ///< of columns that lost bits
  std::int64_t stride = 0;                       ///< steps between rows; 0: unknown
};

/// Two different values.
struct Pair {
  Place place;  ///< of the side that is not replaced, or of `a` if neither is
  std::string column;
  std::string a, b;                                   ///< as text
  std::optional<std::pair<double, double>> values{};  ///< if they are numbers
  std::optional<int> decimals{};                      ///< the digits after the point that both were printed with
};

/// A reason why nothing is proved, and its place.
struct Reason {
  Place place;
  std::string column;  ///< "" if it concerns the row
  std::string text;
  bool not_finite = false;  ///< a value is nan or infinite
};

struct ColumnResult {
  std::string name;
  std::int64_t compared = 0;   ///< pairs of values
  std::int64_t differing = 0;  ///< not the same bits, as far as they are known
  std::int64_t refused = 0;    ///< outside the tolerance
  Difference largest{};
  std::string known_to{};  ///< "every bit", "6 decimals (5e-07)"
};

struct Records {
  Settled verdict{};
  std::int64_t rows = 0;                        ///< pairs of rows that were compared
  std::int64_t repeated_a = 0, repeated_b = 0;  ///< rows that a later attempt replaced
  std::int64_t alone_a = 0, alone_b = 0;        ///< rows that the other's stride omits
  std::int64_t without_loss = 0;                ///< pairs of final rows in which neither has a loss of any kind
  Place first_without_loss;
  std::vector<ColumnResult> columns;
  std::vector<std::string> only_a, only_b;  ///< columns without a value on the other side
  std::optional<Pair> first;                ///< the first, in the order of steps, that the tolerance rejects
  std::vector<Reason> reasons;              ///< why nothing is proved, in the order of steps; the first of each kind
};

/// Compares the columns `names`; if empty, the columns of decided(). Each row is compared with the row of the same
/// attempt, else with the final one; a value that only one of two final rows has is a failure, and so is a step that
/// only one side has, unless the other's stride omits it.
Records records(const Side& a, const Side& b, const Tolerance& tolerance, const std::vector<std::string>& names = {});

/// The ulp distance of two numbers, and whether it is counted in float32, if both are float32 values.
std::pair<std::int64_t, bool> ulps(double a, double b);

}  // namespace zs::compare
