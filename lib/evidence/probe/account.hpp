// SPDX-License-Identifier: Apache-2.0
// The ledger of two recordings. It walks the lists of fields that the reader has walked (probefile/fields.hpp), lists
// what each side holds, and compares. exact: the same bits. rounding: the diagnosis has judged it by a bound. What
// differs otherwise is DIFFERENT if nothing but equality holds for it, else inconclusive.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "compare/ledger.hpp"
#include "compare/measure.hpp"
#include "probe/diagnosis.hpp"

namespace zs::probe {

class Account {
 public:
  /// Compares the steps after `after`.
  Account(const Run& a, const Run& b, const Diagnosis& found, const compare::Tolerance& tolerance, std::int64_t after);

  compare::Ledger ledger() const;
  /// Sentences: numbers that differ by rounding, what differs, what is not finite, what differs and was not judged,
  /// what only one side holds.
  const std::vector<std::string>& rounded() const { return rounded_; }
  const std::vector<std::string>& different() const { return different_; }
  const std::vector<std::string>& wild() const { return wild_; }
  const std::vector<std::string>& open() const { return open_; }
  const std::vector<std::string>& alone() const { return alone_; }
  const std::vector<std::string>& notes() const { return notes_; }
  struct Placed {
    std::int64_t step = std::numeric_limits<std::int64_t>::max();
    std::string text;
  };
  /// The first of different(), a start before a step of its number; without a text if there is none.
  const Placed& earliest() const { return earliest_; }
  /// The first loss that differs: "step 3, rank 0: 1 and 2"; "".
  const std::string& loss() const { return loss_; }
  /// "; the random generator torch of rank 0 is in another state", if that begins with this step; "".
  std::string drawn_otherwise(std::int64_t step) const;
  /// Whether a tensor differs, which a tolerance of elements must judge.
  bool tensors_differ() const { return tensors_differ_; }

  struct Scene;
  struct Outcome {
    compare::Verdict verdict = compare::Verdict::exact;
    std::string text;
    bool excused = false;  ///< not compared: layouts make it otherwise
  };

 private:
  friend struct Scene;
  void add(compare::Holder holder, const std::string& thing);
  void enter(const std::string& thing, const Outcome& outcome);
  void alone(compare::Holder holder, const std::string& thing, const char* excuse);

  compare::Holdings held_a_, held_b_;
  std::vector<std::pair<std::string, compare::Verdict>> compared_;
  std::vector<std::pair<compare::Holder, std::string>> excused_;
  std::vector<std::string> rounded_, different_, wild_, open_, alone_, notes_;
  struct Steps {  ///< in which both sides have the same, and in which not
    std::vector<std::int64_t> same, apart;
  };
  std::map<std::string, Steps> states_;  ///< of random generators
  Steps samples_;                        ///< apart: no digest is on both sides, and what they lead to is the same
  std::set<std::int64_t> shows_draws_;   ///< steps with all that random numbers decide
  std::int64_t at_ = -1, unsound_ = -1;  ///< the step that is entered; the last one that has more than rounding
  Placed earliest_;
  std::string loss_;
  bool tensors_differ_ = false;
};

}  // namespace zs::probe
