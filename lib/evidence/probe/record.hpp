// SPDX-License-Identifier: Apache-2.0
// What zs_probe (share/probe/zs_probe, writer.py) recorded of a training, joined over its ranks.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "probe/relation.hpp"

namespace zs::probe {

/// The version that rank 0's file in `folder` begins with: 1 has no sketches; 0: the folder is no probe.
int version(const std::string& folder);

/// A tensor at one place and step, joined over ranks.
struct Tensor {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::int64_t of = 0, held = 0;  ///< elements: of the whole; in distinct parts
  std::uint64_t digest = 0;
  double squares = 0;
  Sketch sketch;  ///< 8 numbers a range, range by range
  struct Piece {
    std::string key;  ///< where it lies
    std::int64_t begin, count;
    bool contiguous;
    std::uint64_t digest;
    int rank;
    std::string values;  ///< file, or ""
  };
  std::vector<Piece> pieces;
  bool whole() const { return held == of; }
  bool same(const Tensor& other) const;  ///< all bits
};

/// Tensors in the order recorded; names are PLACE/PARAMETER.
class Tensors {
 public:
  Tensor& at(const std::string& name);
  const Tensor* find(const std::string& name) const;
  const std::vector<std::pair<std::string, Tensor>>& all() const { return held_; }
  /// Takes `prefix` off each parameter's name; a name without a place is a parameter's.
  void strip(const std::string& prefix);

 private:
  std::vector<std::pair<std::string, Tensor>> held_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

/// A micro-batch's gradients: of the rank `by` of its data parallelism, the micro-batch `micro` from 0.
struct Contribution {
  int by = 0, micro = 0;
  Tensors tensors;  ///< by parameter
};

struct Step {
  Tensors tensors;
  std::string computed;                                            ///< the type of autocast, or ""
  std::map<std::pair<int, int>, Contribution> locals;              ///< by (by, micro)
  std::map<std::string, double> scalars;                           ///< of rank 0: norm, clip, loss_scale, accumulation
  std::vector<double> rates;                                       ///< of each group, of rank 0
  std::vector<std::map<std::string, std::vector<double>>> groups;  ///< each group's options, of rank 0
  Tensors outputs;               ///< of modules, in the order in which they end: MODULE/SAMPLE
  std::map<int, double> losses;  ///< by rank: what the training said
  std::map<int, std::vector<std::vector<std::string>>> batch;    ///< by rank: of each micro-batch its samples' digests
  std::map<int, std::map<std::string, std::string>> generators;  ///< by rank: a digest of each random generator's state
};

struct Run {
  std::map<std::int64_t, Step> steps;
  std::map<std::int64_t, Tensors> starts;  ///< before step + 1: parameters and state as the training began or resumed
  std::map<std::int64_t, std::int64_t> counted;  ///< where it resumed after so many steps: what its own counter says
  std::vector<std::string> faults;
  std::map<std::pair<std::int64_t, std::string>, std::pair<int, int>> replicas;  ///< ranks that differ: step and tensor
  std::map<std::string, std::vector<std::string>> ties;  ///< of a tied parameter the other names
  std::set<std::string> frozen;
  int ranks = 0;
  std::int64_t end = -1;  ///< steps made; -1: not told
  std::string torch, layout, framework;
  std::string id;                   ///< of rank 0's file: by which a copy is known
  std::vector<std::string> unseen;  ///< what the probe said that it cannot see
  std::set<std::string> parted;     ///< modules of whose outputs ranks hold parts: they are not compared
  std::string prefix;               ///< the module that align() took off
  /// Whether every rank has written its end.
  bool ended() const { return ends == ranks; }
  int ends = 0;
};

/// Throws Error, located, where a file is damaged or a rank is missing. A line that a kill has cut ends a file; a step
/// that not every rank has is none.
/// Steps up to `after` are left out, and the training begins with what they left.
Run read(const std::string& folder, std::int64_t after = 0);

/// A record that is still written. read() reads the lines that are there since the last time, and gives all; a line
/// that does not end yet waits. Throws Error as the function does, and goes on from there the next time.
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

/// Where no parameter of one has a name of the other, but all of one's names begin with a module ("net.") without which
/// they are the other's: takes that module off. A module that Lightning wraps is one's own in plain PyTorch.
void align(Run& a, Run& b);

}  // namespace zs::probe
