// SPDX-License-Identifier: Apache-2.0
#include "zero/optimizer.hpp"

#include <algorithm>

#include "device/coded.hpp"
#include "device/operations.hpp"
#include "device/tensor.hpp"

namespace zs::zero {
namespace {

using optimizer::Rule;

constexpr std::int64_t kFloat = device::size(device::Type::float32);

/// The number of values that a rule keeps for an element.
int kept_by(Rule rule) { return static_cast<int>(optimizer::states(rule).size()); }

/// The number of values that it keeps for n elements; codes count as the float32 numbers with the same bytes.
std::int64_t numbers_kept(Rule rule, std::int64_t n) {
  const std::int64_t each = rule == Rule::adamw_8bit ? (n + kFloat - 1) / kFloat + device::coded_blocks(0, n) : n;
  return each * kept_by(rule);
}

class FusedOptimizer final : public Optimizer {
 public:
  explicit FusedOptimizer(const OptimizerOf& unit)
      : Optimizer(unit.name, unit.parameters, Slots(unit.recipe), unit.residency, Slots(unit.recipe).count() * kFloat),
        name_(unit.name),
        recipe_(unit.recipe),
        layout_(unit.layout),
        pool_(unit.pool) {}

  std::vector<at::Tensor> states() override {
    const ScopedLoad loaded(state());
    std::vector<at::Tensor> states;
    for (int slot = 0; slot < optimizer::kMostStates; ++slot) {
      const at::Tensor numbers = device::tensor(own(slot));
      states.push_back(state().moves() ? numbers.clone() : numbers);
    }
    return states;
  }
  void restore(const std::vector<at::Tensor>& states, std::int64_t) override {
    state().load();
    for (int slot = 0; slot < optimizer::kMostStates; ++slot)
      device::tensor(own(slot)).copy_(states[static_cast<std::size_t>(slot)]);
    state().put_back();
  }

 private:
  std::string name_;
  Recipe recipe_;
  Layout layout_;
  Pool* pool_;

  /// The values in a slot.
  device::View own(int slot) const {
    const device::View view = Optimizer::own();
    return {view.data + (slot > 0 ? slots().count(0) : 0) * kFloat, slots().count(slot), device::Type::float32,
            view.device};
  }
  /// The values in a slot of a segment; empty if the rule has no such slot.
  device::View kept(int slot, const Segment& s) const {
    if (kept_by(s.rule) <= slot) return {};
    const std::int64_t begin = slots().place(slot, s.begin);
    return own(slot).part(begin, begin + s.end - s.begin);
  }
  /// The place of a segment among the directions of its unit.
  device::View of_unit(const Directions& directions, const Segment& s) const {
    return directions.part(layout_.owned.begin + s.begin, layout_.owned.begin + s.end);
  }

  /// The orthogonalised directions of the unit's matrices.
  Directions directions(const Update& update, const device::View& gradient_sum) {
    Directions directions(*pool_, layout_, name_);
    for (const Segment& s : recipe_.segments) {
      if (s.rule != Rule::muon) continue;
      const device::View momentum = kept(0, s);
      device::operations(momentum.device)
          .direction(direction(recipe_.settings), momentum, gradient_sum.part(s.begin, s.end), of_unit(directions, s),
                     update.scale, update.clip);
    }
    directions.orthogonalise(recipe_.matrices, recipe_.settings.ns_steps);
    return directions;
  }

  bool update_master(const Update& update, const device::View& gradient_sum, const device::View& master,
                     const device::View& rounded) override {
    std::optional<Directions> matrices;
    if (!recipe_.matrices.empty()) matrices.emplace(directions(update, gradient_sum));
    const device::Operations& operations = device::operations(master.device);
    for (const Segment& s : recipe_.segments) {
      device::UpdateViews views{part(master, s), kept(0, s), kept(1, s), part(gradient_sum, s), part(rounded, s)};
      if (s.rule == Rule::muon) {
        views.first = {}, views.gradient_sum = of_unit(*matrices, s);
        operations.update(matrix_step(recipe_.settings, update.learning_rate, s.decay, s.matrix.rows, s.matrix.columns),
                          views, 1, 1);
      } else {
        operations.update(factors(recipe_.settings, s.rule, update.learning_rate, update.number, s.decay), views,
                          update.scale, update.clip);
      }
    }
    return rounded.count > 0;
  }
};

Matrix matrix(const unit::Parameter& parameter) { return {parameter.offset, parameter.shape[0], parameter.shape[1]}; }

}  // namespace

Optimizer::Optimizer(const std::string& name, const device::View& parameters, Slots slots, const Residency& residency,
                     std::int64_t bytes)
    : slots_(std::move(slots)),
      has_master_(parameters.type != device::Type::float32),
      count_(parameters.count),
      bytes_(bytes),
      device_(parameters.device),
      state_(residency, "optimizer state of " + name, parameters.device, bytes + (has_master_ ? count_ * kFloat : 0)) {}

device::View Optimizer::own() const {
  return {state_.memory().data() + (has_master_ ? count_ * kFloat : 0), bytes_, device::Type::byte, device_};
}

device::View Optimizer::master(const device::View& parameters) const {
  return has_master_ ? device::View{state_.memory().data(), count_, device::Type::float32, device_} : parameters;
}

void Optimizer::set(const device::View& values) {
  if (!has_master_) return;
  state_.load();
  device::copy(master({}), values);
  state_.put_back();
}

void Optimizer::update(const Update& update, const device::View& gradient_sum, const device::View& parameters) {
  const device::View masters = master(parameters);
  const bool narrow = has_master_ && parameters.type == device::Type::bfloat16;
  const bool rounded = update_master(update, gradient_sum, masters, narrow ? parameters : device::View{});
  if (has_master_ && !rounded) device::copy(parameters, masters);
}

Slots::Slots(const Recipe& recipe) {
  if (!recipe.updates) return;
  segments_ = recipe.segments;
  for (const Segment& s : segments_) {
    for (int slot = 0; slot < kept_by(s.rule); ++slot) counts_[static_cast<std::size_t>(slot)] += s.end - s.begin;
  }
}

std::int64_t Slots::place(int slot, std::int64_t element) const {
  std::int64_t place = 0;
  for (const Segment& s : segments_) {
    if (kept_by(s.rule) <= slot) continue;
    if (element < s.end) return place + element - s.begin;
    place += s.end - s.begin;
  }
  return place;
}

optimizer::Rule rule(const optimizer::Settings& settings, const unit::Parameter& parameter, bool block) {
  return optimizer::rule(settings, block && parameter.shape.size() == 2, parameter.numel());
}

Recipe recipe(const optimizer::Settings& settings, const unit::Unit& unit, bool block, comm::Slice owned,
              bool decay_all) {
  Recipe recipe{settings};
  for (const unit::Parameter& parameter : unit.parameters()) {
    if (!parameter.trained) continue;
    const Rule chosen = rule(settings, parameter, block);
    if (chosen == Rule::muon) recipe.matrices.push_back(matrix(parameter));
    const comm::Slice whole{parameter.offset, parameter.offset + parameter.numel()};
    if (chosen == Rule::adamw_8bit) recipe.coded.push_back(whole);
    const auto [begin, end] = parameter.place().within(owned.begin, owned.end);
    if (begin == end) continue;
    Segment s{begin - owned.begin, end - owned.begin, decay_all || parameter.decay, chosen};
    if (chosen == Rule::muon) s.matrix = matrix(parameter);
    if (chosen == Rule::adamw_8bit) s.tensor = whole;
    // Neighbours that are updated alike are one: a GPU updates them by one kernel.
    Segment* const before = recipe.segments.empty() ? nullptr : &recipe.segments.back();
    const bool alike = before && before->decay == s.decay && before->rule == chosen && chosen != Rule::muon &&
                       chosen != Rule::adamw_8bit;
    if (alike && before->end == s.begin)
      before->end = s.end;
    else
      recipe.segments.push_back(s);
  }
  return recipe;
}

std::int64_t kept(const optimizer::Settings& settings, const unit::Unit& unit, bool block) {
  std::int64_t numbers = 0;
  for (const unit::Parameter& parameter : unit.parameters()) {
    if (parameter.trained) numbers += numbers_kept(rule(settings, parameter, block), parameter.numel());
  }
  return numbers;
}

std::vector<Matrix> matrices(const optimizer::Settings& settings, const unit::Unit& unit, bool block) {
  return recipe(settings, unit, block, {0, unit.trained()}, /*decay_all=*/true).matrices;
}

std::unique_ptr<Optimizer> fused_optimizer(const OptimizerOf& unit) { return std::make_unique<FusedOptimizer>(unit); }

}  // namespace zs::zero
