// SPDX-License-Identifier: Apache-2.0
// Walks a plan with the state of every unit, and stops at the first operation that its state does not allow.
#include <vector>

#include "base/error.hpp"
#include "plan/plan.hpp"

namespace zs::plan {

namespace {

enum class Parameters { sharded, gathering, whole, stale };  // stale: whole, but from before the step
enum class Place { here, away, loading };
enum class GradientState { none, leaf, reducing, shard, gathering, whole };

struct State {
  Parameters parameters;
  GradientState gradient = GradientState::none;
  int forwards = 0, backwards = 0, added = 0;  // micro-steps done
  bool graph = false, input = false, stepped = false;
  Place optimizer = Place::here, shard = Place::here, of_input = Place::here;
  bool secondary = false;  ///< it is partitioned a second time, from this step's parameters
};

class Walk {
 public:
  explicit Walk(const Plan& plan) : plan_(plan), shape_(plan.shape), divided_(plan.shape.divided()) {
    State start{parameters_at_rest()};
    start.shard = between_steps(shape_.offload_parameters);
    for (const Unit& unit : shape_.units) {
      start.optimizer = between_steps(shape_.offloads(unit));
      states_.push_back(start);
    }
  }

  void run() {
    for (at_ = 0; at_ < plan_.ops.size(); ++at_) op(plan_.ops[at_]);
    for (State& state : states_) {
      const bool whole = state.parameters == parameters_at_rest();
      // The end of the step waits for shards of frozen units: no update does.
      if (!trained(state) && state.shard == Place::loading) state.shard = Place::here;
      require((state.stepped || !trained(state)) && whole &&
                  state.optimizer == between_steps(shape_.offloads(unit_of(state))) &&
                  state.shard == between_steps(shape_.offload_parameters),
              "the step ends before every unit is stepped and back in its place");
    }
  }

 private:
  const Plan& plan_;
  const Shape& shape_;
  Division divided_;
  std::vector<State> states_;
  std::size_t at_ = 0;
  bool normed_ = false;
  int first_ = first_trained(shape_);

  void require(bool holds, const char* what) const {
    if (holds) return;
    const std::string where = at_ < plan_.ops.size() ? to_text(plan_.ops[at_], plan_) : "end";
    throw Error("plan", 0, "operation " + std::to_string(at_) + " (" + where + "): " + what);
  }

  Parameters parameters_at_rest() const { return divided_.parameters ? Parameters::sharded : Parameters::whole; }
  static Place between_steps(bool offloaded) { return offloaded ? Place::away : Place::here; }
  void load(Place& place) const {
    require(place == Place::away, "there is nothing to load");
    place = Place::loading;
  }
  void use(Place& place) const {
    require(place != Place::away, "what is offloaded is not loaded");
    place = Place::here;
  }
  void store(Place& place) const {
    require(place == Place::here, "there is nothing to store");
    place = Place::away;
  }

  State& of(int unit) { return states_[static_cast<std::size_t>(unit)]; }
  const Unit& unit_of(const State& state) const {
    return shape_.units[static_cast<std::size_t>(&state - states_.data())];
  }
  bool trained(const State& state) const { return unit_of(state).trained() > 0; }
  bool goes_back(int unit) const { return unit >= first_; }

  void require_whole(int unit) {
    require(of(unit).parameters == Parameters::whole, "the parameters are not gathered");
    const int borrowed = shape_.units[static_cast<std::size_t>(unit)].tied_to;
    if (borrowed >= 0)
      require(of(borrowed).parameters == Parameters::whole, "the borrowed parameters are not gathered");
  }

  /// Backward of `unit` may write only after every unit behind it, which feeds it, has run.
  void require_behind_done(int unit, int micro) {
    for (std::size_t next = static_cast<std::size_t>(unit) + 1; next < states_.size(); ++next) {
      require(states_[next].backwards == micro + 1, "a unit behind it has not run backward");
    }
  }

  /// Stages 0 and 1 add neighbours in time before they reduce, stages 2 and 3 neighbours in rank: see leaf().
  bool adds_leaves() const { return !divided_.gradients; }

  /// Backward of `unit` writes its gradient and, if it is tied to another unit, adds to that unit's gradient.
  void require_room_for_gradient(int unit) {
    const int borrowed = shape_.units[static_cast<std::size_t>(unit)].tied_to;
    require(of(unit).gradient == GradientState::none && (borrowed < 0 || of(borrowed).gradient == GradientState::none),
            "the last micro-step's gradient is still there");
  }

  /// One collective is of gathers that follow each other.
  void require_together(const Op& op) const {
    if (!op.with_next) return;
    require(at_ + 1 < plan_.ops.size() && plan_.ops[at_ + 1].kind == op.kind, "no gather follows that it begins with");
  }

  void norm() {
    for (const State& state : states_) {
      if (!trained(state)) continue;
      const bool complete = state.gradient == (divided_.optimizer_state ? GradientState::shard : GradientState::whole);
      require(complete && state.added == shape_.micro_steps, "a gradient is not complete");
    }
    normed_ = true;
  }

  void gather(const Op& op, State& unit) {
    require(unit.parameters == (divided_.parameters ? Parameters::sharded : Parameters::stale),
            "there is nothing to gather");
    require(!divided_.parameters || !unit.stepped, "a gather after the step is not used");
    if (unit.shard == Place::loading)
      unit.shard = Place::away;  // it is read, and stays in the store as it is
    else
      use(unit.shard);
    require_together(op);
    unit.parameters = Parameters::gathering;
  }

  void forward(const Op& op, State& unit) {
    require_whole(op.unit);
    require(unit.forwards == op.micro && (unit.backwards == op.micro || !goes_back(op.unit)) &&
                op.micro < shape_.micro_steps,
            "the micro-step is out of order");
    require(op.unit == 0 || of(op.unit - 1).forwards == op.micro + 1, "the unit before it has not run forward");
    ++unit.forwards;
    unit.graph = op.kind == Kind::forward;
    unit.input = true;
  }

  void recompute(const Op& op, State& unit) {
    require_whole(op.unit);
    require(unit.input && !unit.graph && unit.forwards == op.micro + 1, "there is no input to recompute from");
    use(unit.of_input);
    unit.graph = true;
  }

  void backward(const Op& op, State& unit) {
    require(goes_back(op.unit), "nothing is trained there, nor in front of it");
    require_whole(op.unit);
    require(unit.graph && unit.forwards == op.micro + 1 && unit.backwards == op.micro,
            "there is no forward to go back through");
    require_behind_done(op.unit, op.micro);
    require_room_for_gradient(op.unit);
    ++unit.backwards;
    unit.graph = unit.input = false;
    if (trained(unit)) unit.gradient = GradientState::leaf;
  }

  void accumulate(const Op& op, State& unit) const {
    require(unit.gradient == (adds_leaves() ? GradientState::leaf : GradientState::shard),
            "there is no gradient to add");
    require(unit.added == op.micro && op.micro + 1 == unit.backwards, "the micro-steps would be added out of order");
    if (++unit.added < shape_.micro_steps) unit.gradient = GradientState::none;  // otherwise the sum replaces it
  }

  void reduce(const Op& op, State& unit) const {
    require(unit.gradient == GradientState::leaf && unit.added == (adds_leaves() ? shape_.micro_steps : op.micro),
            adds_leaves() ? "not every micro-step is added yet" : "there is no leaf gradient to reduce");
    unit.gradient = GradientState::reducing;
  }

  void step(State& unit) const {
    require(normed_, "the norm is not known yet");
    require(!unit.stepped && trained(unit), "it is stepped already, or frozen");
    require(unit.parameters == parameters_at_rest(), "the parameters are not in their place");
    use(unit.optimizer);
    use(unit.shard);
    unit.stepped = true;
    unit.secondary = false;  // it is of the step before
    if (divided_.optimizer_state && !divided_.parameters) unit.parameters = Parameters::stale;
  }

  /// From one state to the next, if it is in the first; `otherwise` says what is missing.
  template <typename T>
  void move(T& state, T from, T to, const char* otherwise) const {
    require(state == from, otherwise);
    state = to;
  }

  void op(const Op& op) {
    require(!op.with_next || op.kind == Kind::gather, "it cannot begin with the next operation");
    if (op.kind == Kind::norm) return norm();
    require(op.unit >= 0 && op.unit < static_cast<int>(states_.size()), "there is no such unit");
    State& unit = of(op.unit);
    switch (op.kind) {
      case Kind::gather:
        return gather(op, unit);
      case Kind::gather_secondary:
        require(unit.secondary, "there is no secondary partition to gather from");
        return move(unit.parameters, Parameters::sharded, Parameters::gathering, "there is nothing to gather");
      case Kind::partition:
        require(shape_.secondary > 0 && unit.parameters == Parameters::whole && !unit.secondary,
                "there is nothing to partition once more");
        unit.secondary = true;
        return;
      case Kind::gather_wait:
        return move(unit.parameters, Parameters::gathering, Parameters::whole, "no gather is under way");
      case Kind::release:
        require(divided_.parameters, "there is nothing to release");
        return move(unit.parameters, Parameters::whole, Parameters::sharded, "there is nothing to release");
      case Kind::forward:
      case Kind::forward_no_grad:
        return forward(op, unit);
      case Kind::recompute:
        return recompute(op, unit);
      case Kind::backward:
        return backward(op, unit);
      case Kind::accumulate:
        return accumulate(op, unit);
      case Kind::reduce:
        return reduce(op, unit);
      case Kind::reduce_wait:
        return move(unit.gradient, GradientState::reducing, GradientState::shard, "no reduce is under way");
      case Kind::gather_grad:
        require(!divided_.optimizer_state, "there is no reduced gradient to gather");
        return move(unit.gradient, GradientState::shard, GradientState::gathering,
                    "there is no reduced gradient to gather");
      case Kind::gather_grad_wait:
        return move(unit.gradient, GradientState::gathering, GradientState::whole, "no gradient gather is under way");
      case Kind::step:
        return step(unit);
      case Kind::load:
        return load(unit.optimizer);
      case Kind::store:
        return store(unit.optimizer);
      case Kind::load_shard:
        return load(unit.shard);
      case Kind::store_shard:
        return store(unit.shard);
      case Kind::load_input:
        return load(unit.of_input);
      case Kind::store_input:
        require(unit.input && !unit.graph && op.unit > 0, "there is no input of another unit that waits for backward");
        return store(unit.of_input);
      case Kind::norm:
        return;
    }
  }
};

}  // namespace

void check(const Plan& plan) { Walk(plan).run(); }

}  // namespace zs::plan
