// SPDX-License-Identifier: Apache-2.0
// A recording, joined over its ranks.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "probefile/fields.hpp"

namespace zs::probefile {

/// A tensor at one place and step, joined over ranks.
struct Tensor {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::int64_t total = 0, held = 0;  ///< elements: of the whole tensor; in distinct parts
  std::uint64_t digest = 0;
  std::uint64_t set = 0, rows = 0, cols = 0;  ///< of weights: whatever the order of elements, of rows; of columns
  double squares = 0;
  Sketch sketch;                 ///< 8 numbers per range
  bool shortened = false;        ///< as beside a golden: its sums were made in another order
  std::vector<double> elements;  ///< at spacing(total); NaN: not recorded. Empty: none is
  int copies = 0;                ///< parts that another rank holds too, with the same bits
  bool summands = false;         ///< ranks hold terms of a sum: its squares are an estimate
  struct Piece {
    std::string key;  ///< its place
    std::int64_t begin, count;
    bool contiguous;
    std::uint64_t digest;
    int rank;
    std::string values;  ///< file, or ""
    std::string place;   ///< of a summand: its place among the elements
    double squares;
  };
  std::vector<Piece> pieces;
  bool whole() const { return held == total; }
  bool same(const Tensor& other) const;  ///< equal in all bits, and in type and shape
};

/// Tensors in order of recording; names are PLACE/PARAMETER.
class Tensors {
 public:
  Tensor& at(const std::string& name);
  void rename(const std::string& name, const std::string& as);
  const Tensor* find(const std::string& name) const;
  const std::vector<std::pair<std::string, Tensor>>& all() const { return held_; }
  /// Removes `prefix` from each parameter's name; a name without a place is a parameter's.
  void strip(const std::string& prefix);
  /// Whether a tensor of several ranges has a sketch of one, as in a golden.
  bool is_short() const;
  /// Leaves what a golden keeps: adds up the ranges of each sketch, drops elements.
  void shorten();

 private:
  std::vector<std::pair<std::string, Tensor>> held_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

/// A micro-batch's gradients: of data-parallel rank `by`, micro-batch `micro` from 0.
struct Contribution {
  int by = 0, micro = 0;
  std::vector<std::string> samples;  ///< digests, "" if they were not recorded
  Tensors tensors;                   ///< by parameter
};

struct Step {
  std::map<int, StepRow> ranks;  ///< what each rank says; its tensors are joined below
  Tensors tensors;
  std::map<std::pair<int, int>, Contribution> locals;  ///< by (by, micro)
  Tensors outputs;                                     ///< of modules, in the order of completion: MODULE/SAMPLE
  std::string computed;                                ///< the type of autocast, or ""
  std::map<std::string, double> scalars;               ///< norm, clip, loss_scale, accumulation
  std::vector<Group> groups;                           ///< of all ranks, each once
  std::map<int, int> by;                               ///< of a rank the data-parallel rank that it is
  std::vector<std::string> contradictions;             ///< what ranks repeat and differ in, but tensors
  /// The row that the end writes: it has the parameters alone.
  bool partial() const { return !ranks.empty() && !ranks.begin()->second.only.empty(); }
  /// The rate of each group.
  std::vector<double> rates() const;
};

/// The part of a training from its start, or from a resume, to the next one.
struct Part {
  std::int64_t start = 0;  ///< steps made before
  bool started = false;    ///< it has a row of its start
  std::optional<EndRow> end;
};

/// Ranks that hold the same part with other bits.
struct Replica {
  int first = 0, second = 0;
  Sketch sketch;  ///< of the second one's
};

struct Run {
  std::map<std::int64_t, Step> steps;
  std::map<std::int64_t, Tensors> starts;        ///< before step + 1: parameters, state and buffers at the start of the
                                                 ///< training or after a resume
  std::map<std::int64_t, std::int64_t> counted;  ///< resumed after so many steps: the value of its own step counter
  std::map<int, std::vector<HeadRow>> heads;     ///< by rank, of each part
  std::map<int, std::vector<Part>> parts;        ///< by rank
  std::vector<std::string> faults;               ///< reasons why the recording proves nothing, located
  std::map<std::pair<std::int64_t, std::string>, Replica>
      replicas;                                          ///< ranks that differ: step, or -1 - start, and tensor
  std::map<std::string, std::vector<std::string>> ties;  ///< the other names of a tied parameter
  std::set<std::string> frozen, loose;                   ///< loose: trained parameters that no optimizer moves
  std::map<std::string, std::int64_t> axes;              ///< of parallelism, of rank 0: the number of ranks
  bool drawn = false;                                    ///< a generator made the samples: reinforcement learning
  int ranks = 0;
  std::int64_t end = -1;  ///< steps made; -1: some rank has no end
  std::string torch, layout, framework;
  std::string id;                   ///< from rank 0's file: identifies copies
  std::vector<std::string> unseen;  ///< what the recorder says that it does not see
  std::set<std::string> parted;     ///< modules with outputs divided among ranks: not compared
  std::string prefix;               ///< the module name that align() removed

  bool ended() const { return end >= 0; }
  /// How rank 0's training ended: "whole", "exception ...", "" if nothing says it.
  std::string how() const;
  /// Whether the stride leaves out this step, which is one of those made.
  bool leaves_out(std::int64_t step) const;
};

/// A name, PLACE/PARAMETER or a parameter's, without the module that its parameter begins with.
std::string without(const std::string& name, const std::string& prefix);

/// If no parameter name of one side occurs on the other, but all names of one begin with a module ("net.") and equal
/// the other's without it: removes that module. Lightning wraps modules so. If the sketches of one side alone are
/// short, shortens the other's.
void align(Run& a, Run& b);

}  // namespace zs::probefile
