// SPDX-License-Identifier: Apache-2.0
// Observes one rank's engine during a step, and compares everything it holds with the reference.
#pragma once
#include <optional>
#include <vector>

#include "verify/fault.hpp"
#include "verify/finding.hpp"
#include "verify/reference.hpp"
#include "zero/engine.hpp"

namespace zs::verify {

/// The compared elements of one parameter on this rank, over all steps.
struct Coverage {
  std::int64_t gradients = 0, parameters = 0;  ///< elements
  std::int64_t gradient_seen = 0, moved = 0;   ///< 1 if any gradient was not zero, any element changed since the start
};

class Probe {
 public:
  /// All arguments must outlive the probe; it becomes the engine's observer. `across`: the two sides compute in
  /// different arithmetics. Then a gradient may differ by rtol of the largest of its unit, and a parameter by twice the
  /// sum of learning rates, and its rounding: if gradients are only rounding, each update of each side moves by about
  /// the learning rate. `knows_leaves`: the reference has losses of every leaf.
  Probe(zero::Engine& engine, const unit::Units& units, int rank, const Tolerance& tolerance, bool across,
        const std::optional<InjectedFault>& fault, bool knows_leaves = true);

  /// Parameters before the first step. COLLECTIVE.
  void begin_run(const Tensors& masters, const Tensors& rounded);
  /// Call it before the engine's step, with the reference's results. `leaves` are this rank's, by micro-step and chunk;
  /// `shards` are the sums over all ranks' leaves, by micro-step, and only needed where gradients are divided; of
  /// either there are none where the reference does not know them; `learned` is the sum of learning rates, including
  /// this step's.
  void begin(std::int64_t step, const ReferenceStep& reference, std::vector<std::vector<Tensors>> leaves,
             std::vector<Tensors> shards, Tensors rounded, double learned);
  /// Call it after the step and the reference's update. COLLECTIVE.
  void end(const zero::StepResult& result, const Tensors& masters, const Tensors& rounded);

  // For the step (or the start), on this rank.
  const Difference& loss() const { return loss_; }
  const Difference& norm() const { return norm_; }
  const std::vector<Difference>& gradients() const { return gradients_; }    ///< by unit
  const std::vector<Difference>& parameters() const { return parameters_; }  ///< by unit
  /// The first difference beyond the tolerance. A leaf's gradient or a local sum counts only if the tolerance is 0;
  /// else the first of these is in `suspect`.
  const Finding& first() const { return first_; }
  const Finding& suspect() const { return suspect_; }

  /// For the whole run, by unit and parameter.
  const std::vector<std::vector<Coverage>>& coverage() const { return coverage_; }

 private:
  bool knows_leaves_;
  zero::Engine& engine_;
  const unit::Units& units_;
  int rank_;
  Tolerance tolerance_;
  bool across_;
  double learned_ = 0;
  std::optional<InjectedFault> fault_;

  std::int64_t step_ = 0, order_ = 0;
  const ReferenceStep* reference_ = nullptr;
  std::vector<std::vector<Tensors>> leaves_;
  std::vector<Tensors> shards_;
  Tensors rounded_;
  std::vector<at::Tensor> start_;  // masters before the first step, by unit
  Difference loss_, norm_;
  std::vector<Difference> gradients_, parameters_;
  Finding first_, suspect_;
  std::vector<std::vector<Coverage>> coverage_;

  void clear();
  /// The allowed difference from these tensors of a unit, times `factor`.
  Tolerance allowed(What what, const std::vector<at::Tensor>& reference, double factor) const;
  void leaf(int unit, int micro);
  void local_sum(int unit);
  void shard(int unit, int micro);
  void reduced();
  void losses(const zero::StepResult& result);
  void norms(const zero::StepResult& result);
  void masters(const Tensors& reference, Phase phase);
  void compute_copies(const Tensors& reference, Phase phase);
  /// The role of values: a part of the sum, which counts only if the tolerance is 0, the whole sum, of which every
  /// element must be seen, or another copy.
  enum class Role { part, whole, copy };
  void keep(Finding finding, Role role);
  void scalar(What what, Phase phase, double target, double reference, Difference& difference, bool is_double,
              std::int64_t leaf = -1, int rank = -1);
  /// Compares target, float32[slice.size()] on the host, from a unit's flat buffer with the reference's tensors.
  void values(int unit, const at::Tensor& target, comm::Slice slice, const std::vector<at::Tensor>& reference,
              double factor, Finding kind, Difference& difference, Role role);
};

}  // namespace zs::verify
