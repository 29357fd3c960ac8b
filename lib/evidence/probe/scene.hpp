// SPDX-License-Identifier: Apache-2.0
// A step, or a start, that both sides have, as the ledger walks its fields: a function for each rule.
#pragma once
#include <map>
#include <set>
#include <string>

#include "probe/account.hpp"

namespace zs::probe {

/// Why one side may lack what the other holds.
inline constexpr const char* kLayout = "another layout records other things";
inline constexpr const char* kStride = "its stride leaves the step out";
inline constexpr const char* kPartial = "the row of the end has the parameters alone";
inline constexpr const char* kCut = "the batch is cut otherwise, and the sum is compared";

/// Equality alone; what may be otherwise without another result, so far: it is not compared by a value; and what
/// another layout or another cut has otherwise.
Account::Outcome equal(const std::string& a, const std::string& b);
Account::Outcome unjudged(bool same, const std::string& text);
inline Account::Outcome excused() { return {compare::Verdict::exact, "", true}; }

/// Parameters that are frozen on both sides and that one side alone records, as its optimizer has them, too: their
/// values show in all gradients.
std::set<std::string> frozen_in_one(const Run& a, const Run& b);

/// A step, or a start, that both sides have.
struct Account::Scene {
  Account& to;
  const Run &a, &b;
  const Diagnosis& found;
  const compare::Tolerance& tolerance;
  std::string prefix;  ///< "step 3: "
  const Step *left = nullptr, *right = nullptr;
  bool alike = false, cut = false, by_samples = false, partial = false, resumed = false;
  std::set<std::string> in_one{};  ///< frozen_in_one()

  /// Enters what two maps hold: `judge` compares a pair, `excuse` is the reason why one side may lack a thing, or null.
  template <class T, class Judge, class Excuse>
  void each(const std::map<std::string, T>& mine, const std::map<std::string, T>& theirs, Judge judge, Excuse excuse) {
    for (const auto& [name, value] : mine) {
      to.add(compare::Holder::a, prefix + name);
      const auto other = theirs.find(name);
      if (other == theirs.end())
        to.alone(compare::Holder::a, prefix + name, excuse(name));
      else
        to.enter(prefix + name, judge(name, value, other->second));
    }
    for (const auto& [name, value] : theirs) {
      to.add(compare::Holder::b, prefix + name);
      if (!mine.contains(name)) to.alone(compare::Holder::b, prefix + name, excuse(name));
    }
  }
  /// Whether a frozen parameter may be on one side alone: some layouts hold what others leave out.
  bool frozen_elsewhere(const std::string& name) const;
  const char* layout() const { return partial ? kPartial : alike ? nullptr : kLayout; }
  /// Where both sides say which parameters a group holds, each says all of them.
  const char* names_lack(const std::string& parameter, bool both_say) const {
    const bool frozen = a.frozen.contains(parameter) || b.frozen.contains(parameter);
    if (in_one.contains(parameter)) return kLayout;
    return layout() && (partial || !both_say || frozen) ? layout() : nullptr;
  }
  /// Whether the step has what random numbers decide: samples, gradients, parameters.
  bool shows_draws() const;
  const char* micro_batch() const { return layout() ? layout() : cut ? nullptr : kCut; }

  Outcome number(const std::string& name, double x, double y) const;  ///< that the step makes: a loss, a norm

  // ---- the fields of a tensor
  Outcome field(probefile::rule::Row, const Tensor& x, const Tensor& y, const std::string& name) const;
  Outcome field(probefile::rule::Part, const Tensor& x, const Tensor& y, const std::string& name) const;
  Outcome field(probefile::rule::Form, const Tensor& x, const Tensor& y, const std::string& name) const;
  Outcome field(probefile::rule::Bits, const Tensor& x, const Tensor& y, const std::string& name) const;
  Outcome field(probefile::rule::Squares, const Tensor& x, const Tensor& y, const std::string& name) const;
  Outcome field(probefile::rule::Orders, const Tensor& x, const Tensor& y, const std::string& name) const;
  Outcome field(probefile::rule::Sums, const Tensor& x, const Tensor& y, const std::string& name) const;
  Outcome field(probefile::rule::Sample, const Tensor& x, const Tensor& y, const std::string& name) const;
  Outcome tensor(const std::string& name, const Tensor& x, const Tensor& y) const;
  template <class Excuse>
  void tensors(const std::map<std::string, const Tensor*>& mine, const std::map<std::string, const Tensor*>& theirs,
               Excuse excuse) {
    each(
        mine, theirs, [&](const std::string& name, const Tensor* x, const Tensor* y) { return tensor(name, *x, *y); },
        excuse);
  }

  // ---- the fields of a step
  void enter(probefile::rule::Row);
  void enter(probefile::rule::Places);
  void enter(probefile::rule::File);
  void enter(probefile::rule::Unseen);
  void enter(probefile::rule::Tensors);
  void enter(probefile::rule::Contributions);
  void enter(probefile::rule::Outputs);
  void enter(probefile::rule::Loss);
  void enter(probefile::rule::Losses);
  void enter(probefile::rule::Targets);
  void enter(probefile::rule::Samples);
  void enter(probefile::rule::Scalars);
  void enter(probefile::rule::Groups);
  void enter(probefile::rule::Schedules);
  void enter(probefile::rule::Counters);
  void enter(probefile::rule::Generators);
  void enter(probefile::rule::Computed);
  /// After all steps: whether the samples of both sides are the same by other digests.
  void samples();
  /// After samples(): of each generator that left its state, whether later steps show that nothing is drawn from it.
  void generators();
};

}  // namespace zs::probe
