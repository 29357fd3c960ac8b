// SPDX-License-Identifier: Apache-2.0
// The result of zs-verify for two probes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "compare/measure.hpp"
#include "compare/verdict.hpp"
#include "probe/diagnosis.hpp"
#include "probefile/read.hpp"

namespace zs::probe {

struct Answer {
  compare::Settled verdict{};
  compare::AnswerLines lines{};  ///< the verdict first
  std::int64_t steps = 0;        ///< compared
  bool apart = false;            ///< a difference beyond rounding, or no proof
  bool ended = false;            ///< B's training has ended
  Map map{};

  /// The text of the first of these lines that there is; "" if there is none.
  std::string line(std::initializer_list<std::string_view> keys) const { return compare::line_of(lines, keys); }
  /// What a person says of the two: the headline, else what failed, else how equal they are.
  std::string sentence() const;
};

/// A place for a reader: "gradient of w" for "grad/w". Any other text is returned unchanged.
std::string words_of(const std::string& place);

/// Layout, ranks, versions: "FSDP2, 2 ranks, torch 2.11.0".
std::string called(const Run& run);

/// Throws Error if a record is damaged. Skips steps up to `after`. `floor`: a probe
/// that shows the effect of rounding, or "".
Answer compare(const std::string& a, const std::string& b, const compare::Tolerance& tolerance, std::int64_t after = 0,
               const std::string& floor = "");

/// The same while B is still being written: reads A and the floor once, and each time what was added to B.
class Live {
 public:
  Live(std::string a, std::string b, const compare::Tolerance& tolerance, std::string floor);
  const Run& reference() const { return a_; }
  struct Seen {
    std::int64_t steps = 0;             ///< compared
    bool apart = false, ended = false;  ///< as of Answer
    bool behind = false;                ///< what was added is not compared yet
  };
  /// Compares the steps that were added.
  Seen grow();
  /// The answer for everything that grow() compared. REQUIRES: grow() has returned once.
  Answer answer();

 private:
  std::string name_a_, name_b_, said_;  // said_: of the floor
  Run a_;
  std::optional<Run> floor_;
  probefile::Growing growing_;
  Run* b_ = nullptr;
  std::optional<Diagnosing> diagnosing_;
  Diagnosis found_;
  compare::Tolerance tolerance_;
};

}  // namespace zs::probe
