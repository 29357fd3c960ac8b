// SPDX-License-Identifier: Apache-2.0
// Compares two checkpoints of any frameworks: weights, masters, moments, steps, settings, schedules, scalers, random
// states.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "checkpoints/state.hpp"
#include "compare/ledger.hpp"
#include "compare/measure.hpp"
#include "state/describe.hpp"
#include "state/expression.hpp"

namespace zs::state {

/// A parameter of one side that consists of parameters of the other: "qkv = cat(q, k, v)".
struct Join {
  std::string name;       ///< on one side
  Expression expression;  ///< over names of the other side
  std::string place;      ///< file and line, for messages
  long line = 0;
};

/// Pairs of names of A and B, read from a file: a line per pair, "A B"; a * on both sides matches any text. "A =
/// EXPRESSION" and "EXPRESSION = B" describe combined parameters (state/expression.hpp). Lines whose first word is #
/// are comments.
class Names {
 public:
  Names() = default;
  /// Throws Error with the line.
  explicit Names(const std::string& path);
  /// The name in B of A's `name`; the same name if no line matches.
  std::string renamed(const std::string& name) const;
  /// The combined parameters of this side (`first`: A), with one entry for each text that a * matches.
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

/// The result for one kind: "float32", "exp_avg", "step".
struct Compared {
  std::string kind{};
  bool tensors = false;  ///< else values
  std::int64_t compared = 0, elements = 0, differing = 0, only_a = 0, only_b = 0;
  compare::Difference largest{};
};
struct Difference {
  compare::Settled verdict{};
  std::vector<std::pair<std::string, std::string>> lines;  ///< "verdict" and its details, in order
  std::vector<Compared> kinds;

  /// A row per kind.
  Sheet sheet() const;
};

/// The content that the verdict needs.
enum class Extent {
  common,  ///< where one side holds weights alone, the weights of both: the rest is named and was not asked for
  whole,   ///< all that either side holds, but what only programs of that kind write
  every,   ///< all that either side holds, as if one program had written both
};

/// The float32 numbers of a parameter are its master, or a weight of that type; those of a tied parameter are its
/// owner's. Content that only one side has makes the result inconclusive, except what only programs of that kind write;
/// a fault on either side is FAILED.
Difference diff(const State& a, const State& b, const compare::Tolerance& tolerance, const Names& names = {},
                Extent extent = Extent::common);

}  // namespace zs::state
