// SPDX-License-Identifier: Apache-2.0
// Where two recorded trainings part first, in the order in which a step computes, and by what relation.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "probe/record.hpp"

namespace zs::probe {

/// The first place beyond the bound of rounding. B is said in terms of A.
struct Finding {
  std::int64_t step = 0;
  std::string place;  ///< "grad", "direction", "state.exp_avg", "param", "model", "local", "output", "rate", "start"
  std::string parameter;             ///< the first that is beyond it, "" for a rate
  std::vector<std::string> tensors;  ///< all that are, by parameter
  std::size_t of = 0;                ///< tensors at this place
  std::string relation;              ///< a sentence's part: "x 1/4 (1 / accumulation)", "no simple relation"
  double residual = 0;               ///< what the relation leaves, relative to B
  double distance = 0, bound = 0;    ///< of `parameter`, relative
};

/// How far apart, over the bound of rounding: the largest of each module and step, and of each place and step.
struct Map {
  std::map<std::string, std::map<std::int64_t, double>> modules, places;
  std::vector<std::string> order;  ///< of the modules
};

struct Diagnosis {
  std::optional<Finding> first;
  std::int64_t steps = 0, tensors = 0, elements = 0, differing = 0;  ///< compared; of other bits
  std::int64_t outputs = 0;                                          ///< of a module and a sample, compared
  std::vector<std::string> only;                                     ///< "state.exp_avg of 8 tensors only in A"
  std::vector<std::string> missing;  ///< gradients and parameters that only one side has
  double nearest = 0;                ///< the largest distance over its bound, where none is beyond it
  std::string nearest_at;
  std::vector<std::string> notes;
  Map map;
  std::string left_out;  ///< ranges whose gradient is rounding alone, counted; "" where there are none
};

/// `floor`: A's training with parameters moved by a unit in the last place, or null. How far it comes apart from A is
/// what rounding may do, in place of an estimate.
Diagnosis diagnose(const Run& a, const Run& b, const Run* floor = nullptr);

/// A step of a side with what its relations are sought among. `before`: the parameters before it, by name, or null.
struct Side {
  const Run& run;
  const Step& step;
  const Step* previous;  ///< the step recorded before it
};

/// A tensor that parts.
struct Apart {
  std::string parameter;
  const Sketch *a, *b;
  double distance, bound;
};

/// What is said of tensors that part at a place, of which there are `of`. REQUIRES: there is one.
Finding made(std::int64_t step, const std::string& place, const std::vector<Apart>& apart, std::size_t of);

/// How gradients of B come from A's: a factor, micro-batches that are missing or counted twice, each rank's own part,
/// stale ones, another parameter's; fills relation and residual.
void explain_gradients(const std::string& place, const std::vector<Apart>& apart, const Side& a, const Side& b,
                       Finding& finding);

/// How a module's outputs of B come from A's: as above, or another sample's.
void explain_outputs(const Tensors& all, const std::string& module, const std::vector<Apart>& apart, const Side& a,
                     const Side& b, Finding& finding);

/// How updates of B come from A's: a factor, none, SGD, decay. `updates` are B's own of all tensors that part.
struct Update {
  std::string parameter;
  Sketch a, b;      ///< parameter after minus before
  Sketch before_b;  ///< B's parameter before
  double distance, bound;
};
void explain_updates(const std::vector<Update>& updates, const Side& a, const Side& b, Finding& finding);

/// Numbers that a factor may stand for.
Constants constants(const Side& a, const Side& b);

}  // namespace zs::probe
