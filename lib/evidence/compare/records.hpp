// SPDX-License-Identifier: Apache-2.0
// The records of two runs, compared in everything that training decides, row by row (rows.hpp).
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compare/measure.hpp"
#include "compare/precision.hpp"
#include "compare/rows.hpp"
#include "compare/verdict.hpp"
#include "metric/table.hpp"

namespace zs::compare {

/// What training decides: the columns of a step that repeat to the last bit. Every other column is about the machine,
/// or unknown here.
const std::vector<std::string>& decided();

struct Side {
  std::string name;  ///< in messages
  const metric::Table* records = nullptr;
  std::map<std::string, Precision> precision{};  ///< of columns that do not have every bit
  std::int64_t stride = 0;                       ///< every how many steps it has a row; 0: nobody knows
};

/// Two values that are not the same.
struct Pair {
  Place place;  ///< of the side that is not replaced, of `a` where neither is
  std::string column;
  std::string a, b;                                   ///< as text
  std::optional<std::pair<double, double>> values{};  ///< of numbers
};

/// A reason why nothing is proved, and where.
struct Reason {
  Place place;
  std::string column;  ///< "" where it is of the row
  std::string text;
  bool not_finite = false;  ///< a value is nan or infinite
};

struct ColumnResult {
  std::string name;
  std::int64_t compared = 0;   ///< pairs of values
  std::int64_t differing = 0;  ///< of which not the same bits, as far as they are known
  std::int64_t refused = 0;    ///< of which not within the tolerance
  Difference largest{};
  std::string known_to{};  ///< "every bit", "6 decimals (5e-07)"
};

struct Records {
  Settled verdict{};
  std::int64_t rows = 0;                        ///< pairs of rows that were compared
  std::int64_t repeated_a = 0, repeated_b = 0;  ///< rows that a later attempt replaced
  std::int64_t alone_a = 0, alone_b = 0;        ///< rows that the other's stride leaves out
  std::int64_t without_loss = 0;                ///< pairs of standing rows in which neither has a loss of any kind
  Place first_without_loss;
  std::vector<ColumnResult> columns;
  std::vector<std::string> only_a, only_b;  ///< columns of which the other has no value at all
  std::optional<Pair> first;                ///< in the order of steps, that the tolerance refuses
  std::vector<Reason> reasons;              ///< why nothing is proved, in the order of steps; the first of each kind
};

/// Compares `names` of decided(), all if empty. Each row is compared with the one of its attempt, else with the one
/// that stands; a value that only one of two standing rows has is a reason to fail, and so is a step that only one side
/// has, unless the other's stride leaves it out.
Records records(const Side& a, const Side& b, const Tolerance& tolerance, const std::vector<std::string>& names = {});

/// The distance of two numbers, and whether it is counted in float32, as both are such.
std::pair<std::int64_t, bool> ulps(double a, double b);

}  // namespace zs::compare
