// SPDX-License-Identifier: Apache-2.0
// The judges of the checks of one recording (checks.cpp has the table), in the sources that the comments name: a
// function where a step is judged by itself, a class where earlier steps count.
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

void judge_finite_of_start(const Run& run, Tally& tally, std::int64_t number, const Tensors& tensors);
void judge_finite(const Run& run, Tally& tally, const Moment& now);
void judge_micro_batches(const Run& run, Tally& tally, const Moment& now);

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
  void repeated(const Breach& found);
  void settle(bool ended);
  std::map<std::set<std::string>, std::int64_t> batches_;
  std::set<std::string> last_;     // the last step's samples
  std::vector<std::size_t> runs_;  // how often each batch was read in steps that follow one another
  std::vector<Breach> again_;      // until the next batch shows that not each one is read so often
  std::vector<Read> steps_;
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
  std::optional<Breach> without_;  // a first step that has no gradients and saw no call of the model
};

class RateJudge : public Judge {
 public:
  using Judge::Judge;
  void step(const Moment& now) override;

 private:
  void schedules(const Moment& now);
  struct Moves {
    std::int64_t step = 0, count = 0;  // as it was seen last
    std::int64_t still = 0;            // the first step in which it did not move: it moves by epochs
    bool each = false, last = false;   // it moves in each step; it moved in the last one
  };
  std::map<std::pair<int, std::size_t>, Moves> moves_;  // of a rank's schedule
};

class LossJudge : public Judge {
 public:
  using Judge::Judge;
  void step(const Moment& now) override;

 private:
  std::set<std::string> rules_;  // that fit all steps so far
  bool begun_ = false;
};

/// A number of a step; `otherwise` if it has none.
double value_of(const std::map<std::string, double>& scalars, const std::string& name, double otherwise);

// ---- gradients: judge_gradients.cpp, judge_norm.cpp

void judge_replicas_of_start(const Run& run, Tally& tally, std::int64_t number, const Tensors& tensors);
void judge_replicas(const Run& run, Tally& tally, const Moment& now);
void judge_gradients(const Run& run, Tally& tally, const Moment& now);
void judge_norm(const Run& run, Tally& tally, const Moment& now);

// ---- the optimizer: judge_updates.cpp

void judge_moments(const Run& run, Tally& tally, const Moment& now);
void judge_updates(const Run& run, Tally& tally, const Moment& now);

// ---- parameters: judge_parameters.cpp

void judge_masters(const Run& run, Tally& tally, const Moment& now);
void judge_found(const Run& run, Tally& tally, const Moment& now);

class MotionJudge : public Judge {
 public:
  using Judge::Judge;
  void start(std::int64_t number, const Tensors& tensors) override;
  void step(const Moment& now) override;
  void end() override;

 private:
  struct Seen {
    std::uint64_t first = 0, last = 0;
    std::int64_t at = 0;  // the step of last; 0: none
    std::int64_t steps = 0, gradients = 0, zero = 0;
    std::int64_t trained = 0;  // of a parameter that is frozen at first: the first step with a gradient
    bool moved = false, rated = false, lost = false, still_moved = false;  // still_moved: while it is frozen
  };
  void frozen(const Moment& now, const std::string& name, const Tensor& tensor, const Tensor* gradient, Seen& seen);
  std::map<std::string, Seen> seen_;
};

}  // namespace zs::probe
