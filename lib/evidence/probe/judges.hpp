// SPDX-License-Identifier: Apache-2.0
// The judges of the checks of one recording (checks.cpp has the table). Each is in the source that its comment names.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "probe/checks.hpp"
#include "probe/relation.hpp"
#include "probe/rules.hpp"

namespace zs::probe {

// ---- what goes in: judge_inputs.cpp

class FiniteJudge : public Judge {
 public:
  using Judge::Judge;
  void start(std::int64_t number, const Tensors& tensors) override;
  void step(const Moment& now) override;

 private:
  void tensors(std::int64_t number, const Tensors& all);
};

class SampleJudge : public Judge {
 public:
  using Judge::Judge;
  void step(const Moment& now) override;
  void end() override;

 private:
  struct Read {
    std::int64_t step;
    std::size_t samples, old;  ///< of the step; those that were read before
    std::int64_t like;         ///< the earlier step with the same samples, or 0
  };
  std::map<std::string, std::int64_t> seen_;  // the last step that read a sample
  std::map<std::set<std::string>, std::int64_t> batches_;
  std::vector<Read> steps_;
};

class MicroBatchJudge : public Judge {
 public:
  using Judge::Judge;
  void step(const Moment& now) override;
};

class CounterJudge : public Judge {
 public:
  using Judge::Judge;
  void start(std::int64_t number, const Tensors& tensors) override;
  void step(const Moment& now) override;

 private:
  void empty_update(const Moment& now);
  std::map<std::string, std::pair<std::int64_t, double>> last_;  // of a parameter: step and counter
  bool told_ = false;
};

class RateJudge : public Judge {
 public:
  using Judge::Judge;
  void step(const Moment& now) override;

 private:
  void schedules(const Moment& now);
  std::map<std::pair<int, std::size_t>, std::pair<std::int64_t, std::int64_t>> counts_;  // of a rank's: step and count
};

class LossJudge : public Judge {
 public:
  using Judge::Judge;
  void step(const Moment& now) override;

 private:
  std::set<std::string> rules_;  // that fit all steps so far
  bool begun_ = false;
};

// ---- gradients: judge_gradients.cpp

class ReplicaJudge : public Judge {
 public:
  using Judge::Judge;
  void start(std::int64_t number, const Tensors& tensors) override;
  void step(const Moment& now) override;

 private:
  /// Whether each of the two ranks has the sum of its own micro-batches' gradients alone.
  bool is_own_share(const Step& step, const std::string& name, const probefile::Replica& ranks) const;
};

class GradientJudge : public Judge {
 public:
  using Judge::Judge;
  void step(const Moment& now) override;
};

class NormJudge : public Judge {
 public:
  using Judge::Judge;
  void step(const Moment& now) override;
};

// ---- the optimizer: judge_updates.cpp

class MomentJudge : public Judge {
 public:
  using Judge::Judge;
  void step(const Moment& now) override;
};

class UpdateJudge : public Judge {
 public:
  using Judge::Judge;
  void step(const Moment& now) override;
};

// ---- parameters: judge_parameters.cpp

class MasterJudge : public Judge {
 public:
  using Judge::Judge;
  void step(const Moment& now) override;
};

class FoundJudge : public Judge {
 public:
  using Judge::Judge;
  void step(const Moment& now) override;
};

class MotionJudge : public Judge {
 public:
  using Judge::Judge;
  void start(std::int64_t number, const Tensors& tensors) override;
  void step(const Moment& now) override;
  void end() override;

 private:
  struct Seen {
    std::uint64_t first = 0;
    std::int64_t steps = 0, gradients = 0, zero = 0;
    bool moved = false, rated = false;
  };
  std::map<std::string, Seen> seen_;
};

/// The parameter of PLACE/PARAMETER.
inline std::string parameter_of(const std::string& name) { return name.substr(name.find('/') + 1); }

}  // namespace zs::probe
