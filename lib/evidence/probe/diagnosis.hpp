// SPDX-License-Identifier: Apache-2.0
// Finds the first place where two recorded trainings differ, in the order of computation, and their relation.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "probe/relation.hpp"
#include "probefile/run.hpp"

namespace zs::probe {

using probefile::Contribution;
using probefile::Group;
using probefile::Option;
using probefile::Run;
using probefile::Step;
using probefile::StepRow;
using probefile::Tensor;
using probefile::Tensors;

/// PLACE and PARAMETER of a name PLACE/PARAMETER; MODULE and SAMPLE of an output's.
inline std::string place_of(const std::string& name) { return name.substr(0, name.find('/')); }
inline std::string parameter_of(const std::string& name) { return name.substr(name.find('/') + 1); }
/// "rank 1", "ranks 2, 3": those that hold parts of a micro-batch's gradient.
std::string holders_text(const Tensor& gradient);
/// "micro-batch 2 of rank 1", or "micro-batch 2" where there is one rank.
std::string micro_text(std::pair<int, int> contribution, const Tensor& gradient, std::size_t ranks);
/// "only the last of 4 micro-batches counts, on every rank", if all ranks have the same weights; else "".
std::string alike_text(const std::vector<double>& weights, const std::vector<std::pair<int, int>>& contributions);

/// "rank 1 holds other values than rank 0".
std::string replica_text(const probefile::Replica& apart);

/// The name of a thing of a step, or of a start after `step` steps: "step 3: grad/w".
std::string thing(std::int64_t step, const std::string& name);
std::string start_thing(std::int64_t step, const std::string& name);

/// The first place beyond the bound of rounding. B is expressed in terms of A.
struct Finding {
  std::int64_t step = 0;
  std::string place;  ///< "grad", "direction", "state.exp_avg", "param", "model", "local", "output", "rate", "start"
  std::string parameter;             ///< the first one beyond the bound, "" for a rate
  std::vector<std::string> tensors;  ///< all beyond the bound, by parameter
  std::size_t total = 0;             ///< tensors at this place
  std::string relation;              ///< a clause: "x 1/4 (1 / accumulation)", "no simple relation"
  double residual = 0;               ///< what the relation does not explain, relative to B
  double distance = 0, bound = 0;    ///< of `parameter`, relative
};

/// Distances over the bound of rounding: the largest of each module and step, and of each place and step.
struct Map {
  std::map<std::string, std::map<std::int64_t, double>> modules, places;
  std::vector<std::string> order;  ///< of the modules
};

struct Diagnosis {
  std::optional<Finding> first;
  std::int64_t steps = 0, tensors = 0, elements = 0, differing = 0;  ///< compared; differing: with different bits
  std::int64_t outputs = 0;                                          ///< compared outputs, per module and sample
  std::vector<std::string> only;                                     ///< "state.exp_avg of 8 tensors only in A"
  std::vector<std::string> missing;  ///< gradients and parameters that only one side has
  double nearest = 0;                ///< the largest distance over its bound, if none is beyond it
  std::string nearest_at;
  std::string computed;  ///< the coarsest type in which gradients that differ were computed
  std::vector<std::string> notes;
  Map map;
  /// By thing(): what differs and was found within a bound, and this bound, relative.
  std::map<std::string, double> judged;
  std::string left_out;  ///< the number of ranges whose gradient is only rounding; "" if there are none
};

/// `floor`: A's training with parameters moved by a unit in the last place, or null. Its distance from A shows the
/// effect of rounding, instead of an estimate.
Diagnosis diagnose(const Run& a, const Run& b, const Run* floor = nullptr);

/// Compares with a B that grows: next() compares the steps that were added since the last call, and returns the whole
/// diagnosis.
class Comparison;
class Diagnosing {
 public:
  /// All of them must outlive this object.
  Diagnosing(const Run& a, const Run& b, const Run* floor);
  ~Diagnosing();
  Diagnosis next();
  std::int64_t last() const;  ///< the last step that was compared; -1: none

 private:
  std::unique_ptr<Comparison> comparison_;
};

/// A step of one side with the data for finding relations. `before`: the parameters before it, by name, or null.
struct Side {
  const Run& run;
  const Step& step;
  const Step* previous;  ///< the step recorded before it
};

/// A tensor that differs.
struct Apart {
  std::string parameter;
  const Sketch *a, *b;
  double distance, bound;
};

/// Whether all these tensors are another side's, rounded to bfloat16: by elements where they are recorded, else by the
/// distance. Noise, or some elements that are others, are not as large everywhere.
bool rounded_everywhere(const std::vector<Apart>& apart, const std::vector<const Tensor*>& a,
                        const std::vector<const Tensor*>& b, std::size_t total);

/// The finding for tensors that differ at a place with `of` tensors. REQUIRES: there is at least one.
Finding made(std::int64_t step, const std::string& place, const std::vector<Apart>& apart, std::size_t total);

/// A finding without tensors, whose relation is the whole sentence.
Finding said(std::int64_t step, const std::string& place, const std::string& parameter, const std::string& relation);

/// By range: what each rank has made of the slice that it owns, as weights of the contributions `keys` relative to
/// `unit`. False if no weights fit; else `finding` has them. A range has at least one sum for each unknown.
bool weighed_by_slices(const std::vector<Apart>& apart, const Side& side, const std::vector<std::pair<int, int>>& keys,
                       double unit, double most, Finding& finding);

/// Relates B's gradients to A's: a factor, missing or repeated micro-batches, each rank's local gradient, stale
/// gradients, another parameter's; sets relation and residual.
void explain_gradients(const std::string& place, const std::vector<Apart>& apart, const Side& a, const Side& b,
                       Finding& finding);

/// A clause on random numbers, which may explain gradients without a relation: dropout is active on both sides, or on
/// one.
std::string drawing(const Side& a, const Side& b, std::int64_t step);

/// Columns joined over tensors.
Sketch concatenated(const std::vector<const Sketch*>& parts);
/// The part of that relation which is of micro-batches: whether there is one.
bool other_micro_batches(const std::vector<Apart>& apart, const Side& a, const Side& b, Finding& finding);

/// Relates a module's outputs of B to A's: as above, or to A's outputs of another sample.
void explain_outputs(const Tensors& outputs, const std::string& module, const std::vector<Apart>& apart, const Side& a,
                     const Side& b, Finding& finding);

/// Relates updates of B to A's: a factor, none, SGD, decay. `updates` are B's for all tensors that differ.
struct Update {
  std::string parameter;
  Sketch a, b;      ///< parameter after minus before
  Sketch before_b;  ///< B's parameter before
  double distance, bound;
};
void explain_updates(const std::vector<Update>& updates, const Side& a, const Side& b, Finding& finding);

}  // namespace zs::probe
