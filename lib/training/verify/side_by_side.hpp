// SPDX-License-Identifier: Apache-2.0
// Trains one model twice in one launch, by the engine and by the reference, and compares every step on every rank.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compare/verdict.hpp"
#include "setup/settings.hpp"
#include "verify/finding.hpp"

namespace zs::verify {

struct Request {
  setup::Settings train;
  bool amp = false;  ///< the reference is LibTorch's autocast from float32 parameters, whatever the target computes in
  bool apart = false;   ///< the reference computes each document alone, by LibTorch's own kernels
  bool merged = false;  ///< the reference adds adapters to the weights that they belong to
  bool whole = false;   ///< the reference computes whole sequences, whatever chunks the target computes them in
  /// Whether its arithmetic differs from the target's: then bits may differ, as far as Probe allows.
  bool across() const { return apart || merged || whole || (amp && train.engine.autocast == at::kFloat); }
  Tolerance tolerance;
  std::string fault;  ///< in the syntax of --inject_fault; "" for none
};

/// The result of one step's comparison, over all ranks.
struct StepRow {
  std::int64_t step = 0;
  double loss = 0, target_loss = 0, grad_norm = 0, loss_scale = 1;  ///< loss and norm are the reference's
  bool skipped = false;  ///< by both sides (float16): losses and parameters were compared, gradients are not finite
  Difference losses{}, norms{}, gradient{}, parameter{};
  std::vector<Difference> gradients{}, parameters{};  ///< by unit
};

struct Verdict {
  compare::Settled kind{};  ///< exact, within, different (`finding`) or failed (`reason`)
  std::string reason{};
  std::int64_t step = 0;  ///< of the finding; 0 is before the first
  Finding finding{};
  std::int64_t steps = 0;  ///< compared
  StepRow largest{};       ///< over all steps
};

/// Receives a step's result. Called on every rank with the same content.
using StepSeen = std::function<void(const StepRow& row)>;

class SideBySide {
 public:
  /// Throws zs::Error if the settings do not match, UsageError at an impossible fault. COLLECTIVE.
  SideBySide(comm::Group& group, const Request& request);
  ~SideBySide();

  /// Trains until the first difference, or to the end. COLLECTIVE.
  Verdict run(const StepSeen& seen);

  /// The effects of the passes on the target's plans.
  std::vector<std::string> pass_effects() const;
  const std::string& unit_name(std::size_t unit) const;
  std::size_t units() const;
  /// For a finding of a parameter.
  const std::string& parameter_name(const Finding& finding) const;
  /// "[3, 17]": a finding's index by axis.
  std::string place_in_shape(const Finding& finding) const;

 private:
  struct State;
  struct Covered;
  std::unique_ptr<State> state_;

  bool one_step(std::int64_t step, const StepSeen& seen, Verdict& verdict);
  void judge(Verdict& verdict);
  /// Sums what the ranks compared, parameter by parameter, until one of which nothing is proved; returns why.
  /// COLLECTIVE.
  std::string sum_coverage(const Verdict& verdict, std::vector<Covered>& covered);
  Finding join(StepRow& row);
};

}  // namespace zs::verify
