// SPDX-License-Identifier: Apache-2.0
// Goldens: recordings that a project keeps, one for each environment. New recordings are compared with them.
// FOLDER/ENVIRONMENT/rank-R.jsonl is a golden; FOLDER/ENVIRONMENT/floor/ shows what rounding does to it, if it is
// there.
#pragma once
#include <string>
#include <vector>

#include "base/error.hpp"
#include "compare/measure.hpp"
#include "compare/verdict.hpp"

namespace zs::comparison {

struct GoldenAnswer {
  /// "same": the bits of the golden; in another environment also if nothing differs. "environment": another one, and
  /// the differences are within rounding. "code": another result in the same environment, or beyond rounding. Else
  /// "inconclusive", or "no golden".
  std::string verdict;
  std::string headline;        ///< one sentence
  compare::AnswerLines lines;  ///< verdict, headline, golden, environment, and the comparison's
  bool rounded = false;        ///< other bits in the same environment, within rounding: "code"
  Status status() const;       ///< 0 same or environment, 1 code, 3 undecided
};

/// Compares a recording with the golden of its environment, else with the golden of the nearest environment.
/// Throws Error, located, if a record is damaged.
GoldenAnswer compare_golden(const std::string& goldens, const std::string& recording);

/// Writes the recording as the golden of its environment, with sketches of one range, and says what moved. `floor`: a
/// recording of the effect of rounding, kept with it; or "". Throws Error if it begins with the golden's parameters.
GoldenAnswer update_golden(const std::string& goldens, const std::string& recording, const std::string& floor);

/// Compares the values of a run as a log or a table has them, such as Megatron's golden_values.json, with those kept:
/// the file `goldens`, or the file of the same name in that folder.
GoldenAnswer compare_golden_values(const std::string& goldens, const std::string& values,
                                   const compare::Tolerance& tolerance);

/// The files below a folder, as paths in it.
std::vector<std::string> files_in(const std::string& folder);

/// The recordings in a folder of recordings, by name; empty if the folder is itself one.
std::vector<std::string> recordings_in(const std::string& folder);
/// The folders in `goldens` that hold goldens, one for each test.
std::vector<std::string> tests_in(const std::string& goldens);

}  // namespace zs::comparison
