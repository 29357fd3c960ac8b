// SPDX-License-Identifier: Apache-2.0
// What share/probe/zs_probe.py recorded of two trainings, compared step by step and tensor by tensor: by digests, which
// add up over ranks, and by values where both kept them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compare/tensors.hpp"

namespace zs::compare {

/// Whether a folder is one of zs_probe.py.
bool holds_probe(const std::string& folder);

/// A tensor at one step, joined over ranks.
struct Probed {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::int64_t of = 0, held = 0;  ///< elements: of the whole; in distinct parts
  std::uint64_t digest = 0;
  double squares = 0;  ///< their sum
  struct Piece {
    std::int64_t begin, count;
    std::uint64_t digest;
    int rank;
    std::string values;  ///< file, or ""
  };
  std::vector<Piece> pieces{};  ///< distinct ones, by place
  double norm() const;
};

struct ProbedStep {
  std::vector<std::pair<std::string, Probed>> tensors;  ///< in the order recorded, "grad/NAME" first
  std::map<int, double> losses;                         ///< by rank
};

struct ProbedRun {
  std::map<std::int64_t, ProbedStep> steps;
  std::vector<std::string> faults;  ///< ranks that hold other values of one part; parts that overlap or are missing
  int ranks = 0;
  std::int64_t end = -1;  ///< steps made, also those not recorded; -1: not told, it was killed
  std::string torch;
};

/// Throws Error, located, where a file is damaged, a rank is missing, or a step is not on every rank. A file whose last
/// line is cut (its training was killed) counts up to there.
ProbedRun read_probe(const std::string& folder);

/// The verdict and what belongs to it: where the two part first, and whether it looks like rounding.
struct ProbeAnswer {
  Verdict verdict = Verdict::exact;
  std::vector<std::pair<std::string, std::string>> lines;
};
ProbeAnswer compare_probes(const std::string& a, const std::string& b, const Tolerance& tolerance);

}  // namespace zs::compare
