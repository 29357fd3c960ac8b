// SPDX-License-Identifier: Apache-2.0
// Reads a probe (share/probe/zs_probe, zs-train --probe): a file of JSON lines per rank, joined. Checks every line:
// one that is incomplete, missing, duplicated or of another recording is reported with its place.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compare/ledger.hpp"
#include "tensorfile/tensor.hpp"

namespace zs::compare {

/// Whether a folder is a probe.
bool holds_probe(const std::string& folder);

/// A tensor at one step, joined over ranks.
struct Probed {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::int64_t of = 0, held = 0;  ///< elements: of the whole tensor; in distinct parts
  std::uint64_t digest = 0;
  double squares = 0;  ///< the sum of their squares
  struct Piece {
    std::int64_t begin, count;
    std::uint64_t digest;
    int rank;
    std::string values;  ///< file, or ""
  };
  std::vector<Piece> pieces{};  ///< distinct ones, by position
  int holders = 0;              ///< number of ranks that hold a part of it
  double norm() const;
  /// Whether both have the same bytes and the same shape.
  bool same(const Probed& other) const;
};

struct ProbedStep {
  std::vector<std::pair<std::string, Probed>> tensors;  ///< in order of recording, "grad/NAME" first
  std::map<int, double> losses;                         ///< by rank
  std::optional<std::int64_t> targets{};                ///< target tokens that the loss counts, of all ranks
  std::string computed{};                               ///< the type that gradients are computed in; "": the tensors'

  const Probed* find(const std::string& name) const;
  bool has_gradients() const;
};

struct ProbedRun {
  std::map<std::int64_t, ProbedStep> steps;
  /// Reasons why the recording proves nothing, each "FILE:LINE: WHAT": no end, lines that are incomplete, missing or
  /// duplicated, ranks with different values of one part, elements that no rank holds.
  std::vector<std::string> faults;
  std::vector<std::string> ids;  ///< identifiers of the recordings, by rank; "" from an older recorder
  int ranks = 0;
  std::int64_t end = -1;   ///< steps made, also those not recorded; -1: unknown, the training was killed
  std::int64_t every = 0;  ///< stride: every such step was recorded, and the first; 0: unknown
  std::string torch;
  /// What was read: "steps", "loss" per step, each tensor per step.
  Holdings holdings;

  /// Whether this recording omits a step because of its stride.
  bool leaves_out(std::int64_t step) const;
  /// Whether `step` is the one that close() recorded in spite of the stride: only parameters.
  bool is_close(std::int64_t step) const;
  /// "whole on 2 ranks" if each rank holds all of each tensor, "cut over 2 ranks" if none does, else "3 of 16 tensors
  /// cut over 2 ranks, the others whole".
  std::string layout() const;
};

/// Throws Error, located, if a line is not of zs_probe, is of another rank or number of ranks, or has an unknown
/// field; if a rank's file is missing; and if ranks disagree on a shape. Skips steps up to `after`: a resumed training
/// may not have recorded them.
ProbedRun read_probe(const std::string& folder, std::int64_t after = 0);

}  // namespace zs::compare
