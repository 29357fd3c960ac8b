// SPDX-License-Identifier: Apache-2.0
// Compares two recordings step by step and place by place: counts, judges each place by its bound, and relates what is
// beyond. It lists by name what it judged as rounding (Diagnosis::judged): the ledger accepts only these as rounding.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "probe/bounds.hpp"
#include "probe/diagnosis.hpp"
#include "probe/negligible.hpp"
#include "probe/premise.hpp"

namespace zs::probe {

class Comparison {
 public:
  Comparison(const Run& a, const Run& b, const Run* floor)
      : a_(a), b_(b), floor_(floor), bounds_(floor), samples_(a, b) {}

  /// Compares the steps that B has after those compared before, and says all.
  Diagnosis next();
  std::int64_t last() const { return last_; }

 private:
  using Paired = std::vector<std::pair<std::string, std::pair<const Tensor*, const Tensor*>>>;  ///< by parameter

  bool done() const { return found_.first.has_value(); }
  void first(std::optional<Finding> finding) {
    if (!done() && finding) found_.first = std::move(finding);
  }
  const Tensor* pair(const std::string& name, const Tensor& left, const Tensors& right);
  void lone(const std::string& name, const Tensor& tensor, const char* side, const Tensors& other);
  void draw(std::int64_t step, const std::string& place, const std::string& name, double ratio);
  /// Within its bound: that is rounding.
  /// `moved`: how far apart what went in is, where the distance is without it.
  void judge(const std::string& name, double distance, double bound, const std::string& at, double moved = 0);
  void starts();
  void start(std::int64_t step, const Tensors& left, const Tensors& right, bool tell = true);
  double master_rounding(const std::string& name) const;
  void step(std::int64_t number, const Side& a, const Side& b);
  void linear(std::int64_t number, const std::string& place, const Paired& tensors, const Side& a, const Side& b);
  double bound(const std::string& place, const std::string& parameter) const;
  static double copied(const std::string& parameter, Sketch& copy, const Side& a, const Side& b);
  void batch(std::int64_t number, const Side& a, const Side& b);
  void replicas(Finding& finding) const;
  void sized(std::int64_t number, const std::string& name, const Tensor& left, const Tensor& right);
  void outputs(std::int64_t number, const Side& a, const Side& b);
  void locals(std::int64_t number, const Side& a, const Side& b);
  void state_apart(std::int64_t number, const std::string& place, const Paired& tensors, const Side& a, const Side& b);
  void begun(std::int64_t number, const std::string& place, const Paired& tensors);
  void buffers(std::int64_t number, const Paired& tensors);
  static const Tensors* before(const Run& run, std::int64_t number);
  void updates(std::int64_t number, const Side& a, const Side& b);
  void parameter(std::int64_t number, const std::string& name, const Tensor& left, const Tensor& right,
                 const Sketch& now_a, const Sketch& now_b, std::vector<Apart>& apart);
  Sketch floor_update(std::int64_t number, const std::string& name) const;

  const Run &a_, &b_;
  const Run* floor_;
  const Step* floor_step_ = nullptr;
  Bounds bounds_;
  Samples samples_;
  Diagnosis found_;
  std::map<std::pair<std::string, std::string>, std::set<std::string>> only_;
  struct Copies {
    std::set<std::string> names{};
    bool same = true;  // as the other side's parameters
  };
  std::map<std::string, Copies> copies_;  // of parameters that one side alone has, by side
  std::set<std::string> missing_;
  std::optional<Finding> pending_, local_, sliced_, buffer_, begun_apart_;
  Negligible negligible_;
  std::set<std::int64_t> begun_;  // starts that were compared
  const Step *before_a_ = nullptr, *before_b_ = nullptr;
  struct Seen {
    std::int64_t step;
    Sketch a, b;
  };
  std::map<std::string, Seen> parameters_;  // as they were when both sides had them last
  std::int64_t last_ = -1;
  bool targets_told_ = false;
};

}  // namespace zs::probe
