// SPDX-License-Identifier: Apache-2.0
// What share/probe/zs_probe.py and zs-train --probe record of a training: a file of JSON lines of each rank, joined.
// Every line is looked at: one that is torn, missing, duplicated or of another recording is said with its place.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compare/ledger.hpp"
#include "tensorfile/tensor.hpp"

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
  int holders = 0;              ///< ranks that hold some of it
  double norm() const;
  /// Whether both hold the same bytes in the same shape.
  bool same(const Probed& other) const;
};

struct ProbedStep {
  std::vector<std::pair<std::string, Probed>> tensors;  ///< in the order recorded, "grad/NAME" first
  std::map<int, double> losses;                         ///< by rank

  const Probed* find(const std::string& name) const;
  bool has_gradients() const;
};

struct ProbedRun {
  std::map<std::int64_t, ProbedStep> steps;
  /// Why the recording proves nothing, each "FILE:LINE: WHAT": no end, lines that are torn, missing or there twice,
  /// ranks that hold other values of one part, elements that no rank holds.
  std::vector<std::string> faults;
  std::vector<std::string> ids;  ///< of the recordings, by rank; "" where an older recorder gave none
  int ranks = 0;
  std::int64_t end = -1;   ///< steps made, also those not recorded; -1: not told, it was killed
  std::int64_t every = 0;  ///< each so manieth step was recorded, and the first; 0: not known
  std::string torch;
  /// What was read: "steps", "loss" by step, each tensor by step.
  Holdings holdings;

  /// Whether this recording leaves out a step by its stride, though it was made.
  bool leaves_out(std::int64_t step) const;
  /// Whether `step` is the one that close() recorded though the stride leaves it out: parameters alone.
  bool is_close(std::int64_t step) const;
  /// "whole on 2 ranks" where each rank holds all of each tensor, "cut over 2 ranks" where none does, else "3 of 16
  /// tensors cut over 2 ranks, the others whole".
  std::string layout() const;
};

/// Throws Error, located, where a line is none of zs_probe.py, is of another rank or of another number of ranks, or has
/// something that this reader does not know; where a rank's file is missing; and where ranks disagree on a shape.
/// Steps up to `after` are left out: a training that resumed may not have recorded them.
ProbedRun read_probe(const std::string& folder, std::int64_t after = 0);

}  // namespace zs::compare
