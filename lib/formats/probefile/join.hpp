// SPDX-License-Identifier: Apache-2.0
// Joins the rows of a recording's ranks. What ranks repeat is compared, never overwritten.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "probefile/run.hpp"

namespace zs::probefile {

/// Adds rows of tensors to a run. Throws Error, without a place, if two parts do not fit together.
class Join {
 public:
  Join(Run& run, std::string folder) : run_(run), folder_(std::move(folder)) {}
  void head(const HeadRow& row, int rank);
  void start(StartRow row, int rank);
  /// Moves the row's tensors into `step`, and the rest of it too.
  void step(Step& step, StepRow row, int rank);
  /// Compares what the ranks of a complete step repeat; adds what they hold together.
  void complete(std::int64_t number, Step& step);
  /// Adds the faults of what no rank completes any more.
  void settle();

 private:
  void tensors(Tensors& into, const std::vector<TensorRow>& rows, int rank, const std::string& values,
               const std::string& where);
  void add(Tensors& into, const TensorRow& row, int rank, const std::string& values, const std::string& where);
  std::string name_of(const std::string& name, int rank) const;
  bool are_of_stage(const Tensors& start, const std::vector<TensorRow>& rows, int rank) const;
  bool is_other(const Tensors& tensors, const TensorRow& row, int rank) const;
  std::int64_t stage_of(int rank) const;
  bool is_copy(const Tensor& joined, const Tensor::Piece& piece, const TensorRow& row) const;
  void compare_copies(Tensor& joined, const std::string& name, const std::string& what);
  void output(Tensors& into, const TensorRow& row, int rank, const std::string& where);
  /// Ranks repeat one thing and differ.
  void differ(std::int64_t number, Step& step, const std::string& what);
  void groups(std::int64_t number, Step& step);
  void scalars(std::int64_t number, Step& step);

  Run& run_;
  std::string folder_;
  std::int64_t current_ = 0;           ///< the step under way, or -1 - start, for replicas; 0: a micro-batch
  std::map<int, std::string> stages_;  ///< of a rank the stage that its names are of, as "stage1.", or ""
  /// Of a step or start, and a tensor: what other stages hold of it, until it is compared.
  std::map<std::pair<std::int64_t, std::string>, std::map<std::int64_t, Tensor>> copies_;
};

}  // namespace zs::probefile
