// SPDX-License-Identifier: Apache-2.0
#include "verify/probe.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "device/tensor.hpp"

namespace zs::verify {
namespace {

std::size_t at_index(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

Probe::Probe(zero::Engine& engine, const unit::Units& units, int rank, const Tolerance& tolerance, bool across,
             const std::optional<InjectedFault>& fault, bool knows_leaves)
    : knows_leaves_(knows_leaves),
      engine_(engine),
      units_(units),
      rank_(rank),
      tolerance_(tolerance),
      across_(across),
      fault_(fault) {
  for (const auto& unit : units) coverage_.emplace_back(unit->parameters().size());
  engine_.observe({[this](int unit, int micro) { leaf(unit, micro); }, [this](int unit) { local_sum(unit); },
                   [this](int unit, int micro) { shard(unit, micro); }, [this] { reduced(); }});
}

void Probe::clear() {
  order_ = 0;
  loss_ = norm_ = {};
  gradients_.assign(units_.size(), {});
  parameters_.assign(units_.size(), {});
  first_ = suspect_ = {};
}

void Probe::begin_run(const Tensors& reference, const Tensors& rounded) {
  clear();
  for (zero::UnitState& state : engine_.states()) start_.push_back(state.masters().clone());
  masters(reference, Phase::initialisation);
  compute_copies(rounded, Phase::initialisation);
}

void Probe::begin(std::int64_t step, const ReferenceStep& reference, std::vector<std::vector<Tensors>> leaves,
                  std::vector<Tensors> shards, Tensors rounded, double learned) {
  clear();
  step_ = step;
  learned_ = learned;
  if (fault_ && fault_->kind != InjectedFault::Kind::bit && fault_->step == step) fault_->apply(engine_, rank_);
  reference_ = &reference;
  leaves_ = std::move(leaves);
  shards_ = std::move(shards);
  rounded_ = std::move(rounded);
}

void Probe::end(const zero::StepResult& result, const Tensors& reference, const Tensors& rounded) {
  losses(result);
  norms(result);
  masters(reference, Phase::optimizer);
  compute_copies(rounded, Phase::gather);
  reference_ = nullptr;
  leaves_.clear();
  shards_.clear();
  rounded_.clear();
}

Tolerance Probe::allowed(What what, const std::vector<at::Tensor>& reference, double factor) const {
  Tolerance tolerance = tolerance_;
  if (!across_) return tolerance;
  if (what == What::parameter) {
    constexpr double kRounded = 1 + 0x1p-8;  // what is computed with has 8 bits or more of it
    tolerance.atol += 2 * learned_ * kRounded;
  } else {
    double largest = 0;
    for (const at::Tensor& tensor : reference)
      largest = std::max(largest, tensor.defined() ? tensor.abs().max().item<double>() : 0);
    tolerance.atol += tolerance.rtol * largest * factor;
  }
  return tolerance;
}

void Probe::leaf(int unit, int micro) {
  const auto u = at_index(unit);
  zero::UnitState& state = engine_.states()[u];
  const std::int64_t leaf = engine_.leaf(micro);
  // The values that forward and backward have just used.
  const auto& used = state.parameters.leaves();
  const auto& parameters = units_[u]->parameters();
  // For a part, its first parameter: they follow each other in the unit.
  const std::size_t first =
      state.is_part()
          ? at_index(std::ranges::find(parameters, state.part().begin, &unit::Parameter::offset) - parameters.begin())
          : 0;
  const Tolerance tolerance = allowed(What::parameter, rounded_[u], 1);
  for (std::size_t i = 0; i < used.size(); ++i) {
    const unit::Parameter& parameter = parameters[first + i];
    const at::Tensor wide = used[i].detach().to(at::kCPU).to(at::kFloat).contiguous();
    Difference ignored;
    const float* const target = wide.data_ptr<float>();
    const float* const right = rounded_[u][first + i].data_ptr<float>();
    if (const auto at = compare::compare(target, right, parameter.numel(), 1, tolerance, ignored)) {
      keep({.phase = Phase::gathered,
            .what = What::parameter,
            .unit = unit,
            .parameter = static_cast<int>(first + i),
            .index = *at,
            .leaf = leaf,
            .target = target[*at],
            .reference = right[*at],
            .ulp = ulp_distance(target[*at], right[*at])},
           Role::copy);
    }
  }
  // Of divided experts there are several leaves: their sum is compared behind its reduction.
  if (reference_->skipped || leaves_[at_index(micro)].empty() || state.is_part()) return;
  Difference ignored;
  std::vector<Tensors> of_unit;
  for (const Tensors& chunk : leaves_[at_index(micro)]) of_unit.push_back({chunk[u]});
  values(unit, state.gradient.on_host(), {0, state.trained()},
         joined_sum(of_unit, leaf, std::ssize(reference_->leaf_losses))[0],
         reference_->scale * static_cast<double>(reference_->leaf_losses.size()),
         {.phase = Phase::backward, .what = What::gradient, .leaf = leaf}, ignored, Role::part);
}

void Probe::local_sum(int unit) {
  if (reference_->skipped) return;
  Difference ignored;
  std::vector<Tensors> of_unit;
  for (const auto& micro : leaves_) {  // none in the micro-step of a rank that has none
    for (const Tensors& leaf : micro) of_unit.push_back({leaf[at_index(unit)]});
  }
  if (of_unit.empty()) return;
  zero::UnitState& state = engine_.states()[at_index(unit)];
  values(unit, state.gradient.on_host(), {0, state.trained()},
         joined_sum(of_unit, engine_.leaf(0), std::ssize(reference_->leaf_losses))[0], reference_->scale,
         {.phase = Phase::accumulation, .what = What::gradient}, ignored, Role::part);
}

void Probe::shard(int unit, int micro) {
  if (reference_->skipped || shards_.empty()) return;
  Difference ignored;
  const zero::UnitState& state = engine_.states()[at_index(unit)];
  values(unit, state.gradient.on_host(), state.layout().divided.gradients ? state.slice() : state.owned(),
         shards_[at_index(micro)][at_index(unit)], reference_->scale,
         {.phase = Phase::reduction, .what = What::gradient}, ignored, Role::part);
}

void Probe::reduced() {
  if (fault_ && fault_->kind == InjectedFault::Kind::bit && fault_->step == step_) fault_->apply(engine_, rank_);
  if (reference_->skipped) return;
  const Phase last = last_of_gradient(engine_.plan().shape);
  for (std::size_t u = 0; u < units_.size(); ++u) {
    zero::UnitState& state = engine_.states()[u];
    values(static_cast<int>(u), state.gradient.on_host(), state.owned(), reference_->sums[u], reference_->scale,
           {.phase = last, .what = What::gradient}, gradients_[u], Role::whole);
  }
}

void Probe::losses(const zero::StepResult& result) {
  const std::size_t known = knows_leaves_ ? reference_->leaf_losses.size() : 0;
  for (std::size_t leaf = 0; leaf < known; ++leaf) {
    const auto& shape = engine_.plan().shape;
    int rank = 0;
    for (int r = 0; r < shape.ranks; ++r) {
      for (int micro = 0; micro < shape.micro_steps; ++micro) {
        const std::int64_t first = plan::leaf(shape, r, micro), number = static_cast<std::int64_t>(leaf);
        if (first >= 0 && first <= number && number < first + shape.chunks_of_rank()) rank = r;
      }
    }
    scalar(What::loss, Phase::forward, result.leaf_losses.at(leaf), reference_->leaf_losses[leaf], loss_, false,
           static_cast<std::int64_t>(leaf), rank);
  }
  scalar(What::loss, Phase::reduction, result.loss, reference_->loss, loss_, false);
}

void Probe::norms(const zero::StepResult& result) {
  Difference ignored;
  scalar(What::loss_scale, Phase::forward, result.loss_scale, reference_->loss_scale, ignored, true);
  if (reference_->skipped && result.skipped) return;
  scalar(What::norm, Phase::clipping, result.grad_norm, reference_->grad_norm, norm_, true);
  scalar(What::clipped_norm, Phase::clipping, result.clipped_norm, reference_->clipped_norm, norm_, true);
}

void Probe::masters(const Tensors& reference, Phase phase) {
  for (std::size_t u = 0; u < units_.size(); ++u) {
    zero::UnitState& state = engine_.states()[u];
    values(static_cast<int>(u), state.masters(), state.owned(), reference[u], 1,
           {.phase = phase, .what = What::parameter}, parameters_[u],
           phase == Phase::optimizer ? Role::whole : Role::copy);
  }
}

void Probe::compute_copies(const Tensors& reference, Phase phase) {
  for (std::size_t u = 0; u < units_.size(); ++u) {
    const at::Tensor whole = engine_.states()[u].computed_with();
    const zero::UnitState& state = engine_.states()[u];
    values(static_cast<int>(u), whole, {0, whole.numel()}, reference[u], 1, {.phase = phase, .what = What::parameter},
           parameters_[u], Role::copy);
    // A frozen parameter has no master: this is its only copy.
    if (phase == Phase::gather && state.trained() < state.numel())
      values(static_cast<int>(u), whole.slice(0, state.trained()), {state.trained(), state.numel()}, reference[u], 1,
             {.phase = phase, .what = What::parameter}, parameters_[u], Role::whole);
  }
}

void Probe::keep(Finding finding, Role role) {
  finding.found = true;
  if (finding.rank < 0) finding.rank = rank_;
  finding.order = order_++;
  Finding& place = role == Role::part && !tolerance_.exact() ? suspect_ : first_;
  if (finding.before(place)) place = finding;
}

void Probe::scalar(What what, Phase phase, double target, double reference, Difference& difference, bool is_double,
                   std::int64_t leaf, int rank) {
  const std::int64_t ulp = is_double ? ulp_distance(target, reference)
                                     : ulp_distance(static_cast<float>(target), static_cast<float>(reference));
  if (ulp == 0 && std::isfinite(target)) return;
  difference.add(target, reference, ulp);
  if (tolerance_.accepts(target, reference)) return;
  keep({.phase = phase, .what = what, .leaf = leaf, .rank = rank, .target = target, .reference = reference, .ulp = ulp},
       Role::copy);
}

void Probe::values(int unit, const at::Tensor& target, comm::Slice slice, const std::vector<at::Tensor>& reference,
                   double factor, Finding kind, Difference& difference, Role role) {
  const auto& parameters = units_[at_index(unit)]->parameters();
  const Tolerance tolerance = allowed(kind.what, reference, factor);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const unit::Parameter& parameter = parameters[i];
    const auto [begin, end] = parameter.place().within(slice.begin, slice.end);
    if (begin == end) continue;
    const std::int64_t skipped = begin - parameter.offset, n = end - begin;
    const float* const mine = target.data_ptr<float>() + (begin - slice.begin);
    const float* const right = reference[i].data_ptr<float>() + skipped;
    if (role == Role::whole) {
      Coverage& coverage = coverage_[at_index(unit)][i];
      const bool gradient = kind.what == What::gradient;
      (gradient ? coverage.gradients : coverage.parameters) += n;
      if (gradient && !coverage.gradient_seen)
        coverage.gradient_seen = std::any_of(mine, mine + n, [](float value) { return value != 0; });
      if (!gradient && parameter.trained && !coverage.moved) {
        const float* const start = start_[at_index(unit)].data_ptr<float>() + (begin - slice.begin);
        coverage.moved = !std::equal(mine, mine + n, start);
      }
    }
    const auto at = compare::compare(mine, right, n, factor, tolerance, difference);
    if (!at) continue;
    Finding finding = kind;
    finding.unit = unit;
    finding.parameter = static_cast<int>(i);
    finding.index = skipped + *at;
    finding.target = mine[*at] * factor;
    finding.reference = right[*at] * factor;
    finding.ulp = ulp_distance(mine[*at], right[*at]);
    keep(finding, role);
  }
}

}  // namespace zs::verify
