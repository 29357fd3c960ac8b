// SPDX-License-Identifier: Apache-2.0
// Two checkpoints of any frameworks, compared: weights, masters, moments, steps, settings, schedules, scalers, random
// states.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compare/ledger.hpp"
#include "compare/measure.hpp"
#include "state/describe.hpp"
#include "state/expression.hpp"
#include "state/state.hpp"

namespace zs::state {

/// A parameter of one side that is made of parameters of the other: "qkv = cat(q, k, v)".
struct Join {
  std::string name;       ///< of the one side
  Expression expression;  ///< of names of the other side
  std::string place;      ///< file and line, for messages
  long line = 0;
};

/// Names of A by names of B, as a file has them: a line a pair, "A B"; one with a * on both sides is of all names that
/// begin and end so. "A = EXPRESSION" and "EXPRESSION = B" say what is made of what (state/expression.hpp). Lines whose
/// first word is # are left out.
class Names {
 public:
  Names() = default;
  /// Throws Error with the line.
  explicit Names(const std::string& path);
  /// What the name of A is called in B; the name itself where no line says it.
  std::string renamed(const std::string& name) const;
  /// What is made of the parameters of this side (`first`: A), with a line for each text that a * stands for.
  std::vector<Join> joins(const State& state, bool first) const;
  bool empty() const { return rules_.empty() && joins_.empty(); }

 private:
  struct Line {
    bool first = true;  ///< the parts are of A
    std::string name, expression;
    long number = 0;
  };
  std::string path_;
  std::vector<std::pair<std::string, std::string>> rules_;
  std::vector<Line> joins_;
};

/// What was compared of one kind: "float32", "exp_avg", "step".
struct Compared {
  std::string kind{};
  bool tensors = false;  ///< else values
  std::int64_t compared = 0, elements = 0, differing = 0, only_a = 0, only_b = 0;
  compare::Difference largest{};
};
struct Difference {
  compare::Settled verdict{};
  std::vector<std::pair<std::string, std::string>> lines;  ///< "verdict", and what belongs to it, in order
  std::vector<Compared> kinds;

  /// A row a kind.
  Sheet sheet() const;
};

/// What float32 numbers a side has of a parameter are its master, or a weight of that type; a parameter of another name
/// of itself has the numbers of that. What only one side has leaves the two undecided; a fault of either is FAILED.
Difference diff(const State& a, const State& b, const compare::Tolerance& tolerance, const Names& names = {});

}  // namespace zs::state
