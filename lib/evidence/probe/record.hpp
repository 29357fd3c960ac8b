// SPDX-License-Identifier: Apache-2.0
// A training's recording by zs_probe (share/probe/zs_probe, writer.py), joined over its ranks.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "probe/relation.hpp"

namespace zs::probe {

/// The version in rank 0's file in `folder`: 1 has no sketches; 0: the folder is no probe.
int version(const std::string& folder);

/// A tensor at one place and step, joined over ranks.
struct Tensor {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::int64_t of = 0, held = 0;  ///< elements: of the whole tensor; in distinct parts
  std::uint64_t digest = 0;
  double squares = 0;
  Sketch sketch;  ///< 8 numbers per range
  struct Piece {
    std::string key;  ///< its place
    std::int64_t begin, count;
    bool contiguous;
    std::uint64_t digest;
    int rank;
    std::string values;  ///< file, or ""
  };
  std::vector<Piece> pieces;
  bool whole() const { return held == of; }
  bool same(const Tensor& other) const;  ///< equal in all bits
};

/// Tensors in order of recording; names are PLACE/PARAMETER.
class Tensors {
 public:
  Tensor& at(const std::string& name);
  const Tensor* find(const std::string& name) const;
  const std::vector<std::pair<std::string, Tensor>>& all() const { return held_; }
  /// Removes `prefix` from each parameter's name; a name without a place is a parameter's.
  void strip(const std::string& prefix);

 private:
  std::vector<std::pair<std::string, Tensor>> held_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

/// A micro-batch's gradients: of data-parallel rank `by`, micro-batch `micro` from 0.
struct Contribution {
  int by = 0, micro = 0;
  Tensors tensors;  ///< by parameter
};

struct Step {
  Tensors tensors;
  std::string computed;                                            ///< the type of autocast, or ""
  std::map<std::pair<int, int>, Contribution> locals;              ///< by (by, micro)
  std::map<std::string, double> scalars;                           ///< rank 0's: norm, clip, loss_scale, accumulation
  std::vector<double> rates;                                       ///< of each group, from rank 0
  std::vector<std::map<std::string, std::vector<double>>> groups;  ///< each group's options, from rank 0
  Tensors outputs;               ///< of modules, in the order of completion: MODULE/SAMPLE
  std::map<int, double> losses;  ///< by rank: the loss that the training reported
  std::map<int, std::vector<std::vector<std::string>>> batch;       ///< by rank: each micro-batch's digests of samples
  std::map<int, std::vector<std::optional<std::int64_t>>> targets;  ///< by rank: each micro-batch's labels that the
                                                                    ///< loss counts, if they were recorded
  std::map<int, std::map<std::string, std::string>> generators;  ///< by rank: a digest of each random generator's state
};

struct Run {
  std::map<std::int64_t, Step> steps;
  std::map<std::int64_t, Tensors> starts;  ///< before step + 1: parameters and state at the start of the training or
                                           ///< after a resume
  std::map<std::int64_t, std::int64_t> counted;  ///< resumed after so many steps: the value of its own step counter
  std::vector<std::string> faults;
  std::map<std::pair<std::int64_t, std::string>, std::pair<int, int>> replicas;  ///< ranks that differ: step and tensor
  std::map<std::string, std::vector<std::string>> ties;  ///< the other names of a tied parameter
  std::set<std::string> frozen;
  int ranks = 0;
  std::int64_t end = -1;  ///< steps made; -1: unknown
  std::string torch, layout, framework;
  std::string id;                   ///< from rank 0's file: identifies copies
  std::vector<std::string> unseen;  ///< what the probe reported that it cannot see
  std::set<std::string> parted;     ///< modules with outputs divided among ranks: not compared
  std::string prefix;               ///< the module name that align() removed
  /// Whether every rank has written its end.
  bool ended() const { return ends == ranks; }
  int ends = 0;
};

/// Throws Error, located, if a file is damaged or a rank is missing. A line
/// that a kill truncated ends a file; a step that some rank lacks is ignored.
/// Skips steps up to `after`; the training begins with their result.
Run read(const std::string& folder, std::int64_t after = 0);

/// A recording that is still being written. read() reads the lines that were added since the last call and returns
/// everything; an incomplete last line waits. Throws Error as the function does, and continues there at the next call.
class Growing {
 public:
  class Reader;
  explicit Growing(const std::string& folder);
  ~Growing();
  Growing(const Growing&) = delete;
  Growing& operator=(const Growing&) = delete;
  Run& read();

 private:
  std::unique_ptr<Reader> reader_;
};

/// If no parameter name of one side occurs on the other, but all names of one begin with a module ("net.") and equal
/// the other's without it: removes that module. Lightning wraps modules so.
void align(Run& a, Run& b);

}  // namespace zs::probe
