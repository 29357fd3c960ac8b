// SPDX-License-Identifier: Apache-2.0
// Steps that are made by hand, for the tests of judges.
#pragma once
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "probe/judges.hpp"

namespace zs::probe {

/// A matrix of 4 x 4 with these sums; their mean square is its norm's.
inline Tensor matrix(const Sketch& sums, const std::vector<int>& ranks = {0}) {
  Tensor made;
  made.dtype = "F32", made.shape = {4, 4}, made.total = made.held = 16, made.sketch = sums;
  made.squares = std::inner_product(sums.begin(), sums.end(), sums.begin(), 0.0) / static_cast<double>(kSumsOfRange);
  made.digest = std::hash<double>()(sums[0]) + std::hash<double>()(sums[1]);
  for (const int rank : ranks) made.pieces.push_back({"0+16", 0, 16, true, made.digest, rank, "", "", made.squares});
  return made;
}

inline Sketch times(double factor, Sketch sums) {
  for (double& sum : sums) sum *= factor;
  return sums;
}

inline Sketch plus(Sketch a, const Sketch& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

inline const Sketch kA{1, -2, 3, 0.5, -1, 2, -0.25, 4}, kB{2, 1, -1, 3, 0.5, -2, 1, -1},
    kC{0.5, 3, 1, -1, 2, 1, -2, 0.25};

/// A run of one step, and what was there before it.
struct Made {
  Run run;
  Tensors from;
  Step& step = run.steps[2];

  Made() { run.ranks = 2; }
  void group(const std::string& optimizer, std::map<std::string, Option> options,
             const std::vector<std::string>& parameters) {
    step.groups.push_back({std::move(options), parameters, optimizer});
  }
  void micro(int by, int number, const std::string& parameter, const Sketch& sums) {
    Contribution& into = step.locals[{by, number}];
    into.by = by, into.micro = number;
    into.tensors.at(parameter) = matrix(sums, {by});
  }
  Moment moment() { return {2, step, nullptr, &from}; }
};

using OfStep = void (*)(const Run&, Tally&, const Moment&);

inline Tally judged(Made& made, OfStep judge) {
  Tally tally;
  judge(made.run, tally, made.moment());
  return tally;
}

inline std::string said(const Tally& tally) {
  return tally.breaches().empty() ? "" : tally.breaches().front().place + ": " + tally.breaches().front().relation;
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline Option number(double value) { return {{value}, ""}; }

}  // namespace zs::probe
