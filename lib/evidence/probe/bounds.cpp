// SPDX-License-Identifier: Apache-2.0
#include "probe/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "probe/matching.hpp"
#include "probe/options.hpp"
#include "probe/rules.hpp"

namespace zs::probe {
namespace {

/// Whether all micro-batches' gradients have the same bits.
bool all_same(const Step& a, const Step& b) {
  const auto pairs = matched(a, b);
  if (pairs.empty() || pairs.size() != a.locals.size() || pairs.size() != b.locals.size()) return false;
  return std::all_of(pairs.begin(), pairs.end(), [](const auto& pair) {
    const auto &left = pair.first->tensors.all(), &right = pair.second->tensors.all();
    return left.size() == right.size() && std::all_of(left.begin(), left.end(), [&](const auto& known) {
             const Tensor* const other = pair.second->tensors.find(known.first);
             return other && known.second.same(*other);
           });
  });
}

bool is_gradient(const std::string& name) { return name.starts_with("grad/") || name.starts_with("direction/"); }

bool computes_in_bfloat16(const Group& group) {
  const auto muon = group.options.find("use_muon");
  return group.optimizer.find("Muon") != std::string::npos || group.options.contains("ns_steps") ||
         (muon != group.options.end() && muon->second.text == "true");
}

}  // namespace

bool gradients_same(const Step& a, const Step& b) {
  bool any = false;
  for (const auto& [name, tensor] : a.tensors.all()) {
    if (!is_gradient(name)) continue;
    const Tensor* const other = b.tensors.find(name);
    if (!other || !tensor.same(*other)) return false;
    any = true;
  }
  return any && std::all_of(b.tensors.all().begin(), b.tensors.all().end(), [&](const auto& known) {
           return !is_gradient(known.first) || a.tensors.find(known.first);
         });
}

bool effects_same(const Step& a, const Step& b) {
  return gradients_same(a, b) && ((a.locals.empty() && b.locals.empty()) || all_same(a, b));
}

std::optional<double> clip_factor(const Step& step) {
  constexpr double kEps = 1e-6;  // which clipping adds to the norm
  const auto norm = step.scalars.find("norm"), clip = step.scalars.find("clip");
  if (step.scalars.contains("clips")) return std::nullopt;
  if (clip == step.scalars.end()) return norm == step.scalars.end() ? std::nullopt : std::optional(1.0);
  if (norm == step.scalars.end()) return std::nullopt;
  if (!(clip->second > 0)) return 1.0;
  return std::min(1.0, clip->second / (norm->second + kEps));
}

double sum_rounding(const std::string& dtype, std::size_t terms) {
  return std::max(rounding("F32"), static_cast<double>(terms + 1) * half_unit(dtype) / 2);
}

void Bounds::begin(std::int64_t number, const Side& a, const Side& b, const Tensors* from_a, const Tensors* from_b) {
  number_ = number, left_ = &a, right_ = &b, from_a_ = from_a, from_b_ = from_b;
  clean_before_ = clean_;
  floor_step_ = nullptr;
  if (floor_) {
    const auto known = floor_->steps.find(number);
    if (known != floor_->steps.end()) floor_step_ = &known->second;
  }
  locals_same_ = all_same(a.step, b.step);
  gradients_same_ = gradients_same(a.step, b.step);
  addends_ = a.step.locals.size();
  options_same_.clear();
  groups_ = groups_of(a.step);
  for (const auto& [i, j] : paired(a.step.groups, b.step.groups)) {
    const Group &mine = a.step.groups[i], &theirs = b.step.groups[j];
    const bool equal = options_apart(mine, theirs).empty();
    for (const std::string& name : mine.params) {
      if (equal) options_same_.insert(name);
      if (computes_in_bfloat16(mine) || computes_in_bfloat16(theirs)) muon_.insert(name);
    }
  }
  const auto mine = counters(a.step), theirs = counters(b.step);
  std::erase_if(options_same_, [&](const std::string& name) {
    const auto left = mine.find(name), right = theirs.find(name);
    return left != mine.end() && right != theirs.end() && left->second != right->second;
  });
  clipped_ = std::max(clipped_, std::fabs(clip_factor(a.step).value_or(1) / clip_factor(b.step).value_or(1) - 1));
}

std::string Bounds::computed(const std::string& parameter) const {
  std::string dtype;
  for (const Side* side : {left_, right_}) {
    dtype = coarser(dtype, side->step.computed);
    for (const auto& [key, local] : side->step.locals) {
      if (const Tensor* const found = local.tensors.find(parameter)) dtype = coarser(dtype, found->dtype);
    }
    for (const char* place : {"grad/", "model/"}) {
      if (const Tensor* const found = side->step.tensors.find(place + parameter)) dtype = coarser(dtype, found->dtype);
    }
  }
  return dtype;
}

/// Differences from earlier steps grow with each step: as far as the floor's, or, by estimate, the gradients' at most
/// some tens of times the parameters'.
double Bounds::grown(const Tensors& mine, const Tensors* moved, const std::string& name) const {
  const Tensor *const left = mine.find(name), *const right = moved ? moved->find(name) : nullptr;
  if (!left || !right || left->sketch.size() != right->sketch.size()) return 50 * drift_;
  return kFloors * distance(left->sketch, right->sketch);
}

bool Bounds::same(const std::string& name) const {
  const Tensor *const left = left_->step.tensors.find(name), *const right = right_->step.tensors.find(name);
  return left && right && left->same(*right);
}

bool Bounds::same_before(const std::string& name) const {
  const Tensor* const left = from_a_ ? from_a_->find(name) : nullptr;
  const Tensor* const right = from_b_ ? from_b_->find(name) : nullptr;
  return left && right && left->same(*right);
}

/// Whether each state of a parameter had the same bits before the step, or has them after it: the update computes with
/// these. A parameter without recorded state may have one that is not recorded: it is the same where nothing has
/// differed yet.
bool Bounds::same_states(const std::string& parameter) const {
  bool any = false;
  for (const auto& [name, tensor] : left_->step.tensors.all()) {
    if (!name.starts_with("state.") || parameter_of(name) != parameter) continue;
    if (!same(name) && !same_before(name) && !clean_before_) return false;
    any = true;
  }
  return any || clean_before_;
}

/// Whether an update has the same inputs on both sides, as far as they are recorded. If all gradients are the same, the
/// parameter before it is the same, too: they were computed with it.
bool Bounds::same_inputs(const std::string& parameter) const {
  return (same("grad/" + parameter) || same("direction/" + parameter)) &&
         (same_before("param/" + parameter) || (gradients_same_ && !(from_a_ && from_b_))) && same_states(parameter) &&
         options_same_.contains(parameter);
}

double Bounds::gradient(const std::string& parameter, const std::string& place) const {
  const std::string dtype = computed(parameter);
  if (locals_same_ && (place == "grad" || place == "direction")) {
    std::string summed;  // the types of the terms and of the sum
    Sketch sum;
    double parts = 0;
    for (const auto& [key, local] : left_->step.locals) {
      const Tensor* const found = local.tensors.find(parameter);
      if (!found) continue;
      summed = coarser(summed, found->dtype), parts += norm(found->sketch);
      sum.resize(std::max(sum.size(), found->sketch.size()), 0);
      for (std::size_t i = 0; i < found->sketch.size(); ++i) sum[i] += found->sketch[i];
    }
    if (const Tensor* const sum = left_->step.tensors.find(place + "/" + parameter))
      summed = coarser(summed, sum->dtype);
    // If the terms of a sum of 16 bits cancel, the rounding of the terms remains.
    const bool cancels = half_unit(summed) > half_unit("F32") && norm(sum) > 0;
    if (place == "grad") return sum_rounding(summed, addends_) * (cancels ? std::max(1.0, parts / norm(sum)) : 1);
  }
  return rounding(dtype) +
         grown(left_->step.tensors, floor_step_ ? &floor_step_->tensors : nullptr, place + "/" + parameter);
}

double Bounds::state(const std::string& place, const std::string& parameter) const {
  const std::string name = place + "/" + parameter;
  const bool before =
      same_before(name) || (from_a_ && from_b_ && !from_a_->find(name) && !from_b_->find(name)) || clean_before_;
  if (same("grad/" + parameter) && before && options_same_.contains(parameter)) {
    std::string dtype;
    for (const Side* const side : {left_, right_}) {
      if (const Tensor* const tensor = side->step.tensors.find(name)) dtype = coarser(dtype, tensor->dtype);
    }
    return sum_rounding(dtype, 8);
  }
  return 4 * gradient(parameter, place);
}

double Bounds::output(const std::string& name, const std::string& dtype) const {
  return rounding(coarser(dtype, coarser(left_->step.computed, right_->step.computed))) +
         grown(left_->step.outputs, floor_step_ ? &floor_step_->outputs : nullptr, name);
}

double Bounds::buffer(const std::string& parameter) const {
  if (locals_same_ && clean_before_) return rounding("F32");
  return rounding(coarser(left_->step.computed, right_->step.computed)) +
         grown(left_->step.tensors, floor_step_ ? &floor_step_->tensors : nullptr, "buffer/" + parameter);
}

double Bounds::copy(const std::string& parameter) const {
  const std::string name = "param/" + parameter;
  if (!left_->step.tensors.find(name) || !right_->step.tensors.find(name)) return 2 * gradient(parameter, "model");
  std::string dtype;
  for (const Side* const side : {left_, right_}) {
    if (const Tensor* const found = side->step.tensors.find("model/" + parameter)) dtype = coarser(dtype, found->dtype);
  }
  return (same(name) ? 1 : 2) * sum_rounding(dtype, 1);
}

double Bounds::number(bool norm) const {
  if (gradients_same_ || (locals_same_ && !norm)) return rounding("F32");
  std::string dtype = locals_same_ ? "" : coarser(left_->step.computed, right_->step.computed);
  for (const auto& [name, tensor] : left_->step.tensors.all()) {
    if (is_gradient(name)) dtype = coarser(dtype, tensor.dtype);
  }
  for (const auto& [key, local] : left_->step.locals) {
    if (!local.tensors.all().empty()) dtype = coarser(dtype, local.tensors.all().front().second.dtype);
  }
  return locals_same_ ? sum_rounding(dtype, addends_) : rounding(dtype) + 50 * drift_;
}

/// How far rounding turns the direction that Muon makes of its input, relative to it. An iteration of Newton-Schulz is
/// steepest at 0, with a slope of 3.4445, and so are several: they move a direction by up to that slope to their number
/// times what moves their input, whose norm is 1. That is the distance of the momenta, where both sides have them, and
/// the rounding to 16 bits: the root of its mean square is 1 / sqrt(8 ln 2) of half a unit.
double Bounds::turned(const std::string& parameter) const {
  const double unit = half_unit(computed(parameter));
  const auto group = groups_.find(parameter);
  const Tensor *direction = nullptr, *const after = left_->step.tensors.find("param/" + parameter);
  if (!after || after->shape.size() != 2 || !(unit > half_unit("F32"))) return 0;
  for (const Side* const side : {right_, left_}) {
    if (const Tensor* const found = side->step.tensors.find("direction/" + parameter)) direction = found;
  }
  const double rows = static_cast<double>(after->shape[0]), columns = static_cast<double>(after->shape[1]);
  const double length =
      direction ? std::sqrt(direction->squares / std::max(1.0, rows / columns)) : std::sqrt(std::min(rows, columns));
  double moved = unit / std::sqrt(8 * std::numbers::ln2);
  const Tensor *const mine = left_->step.tensors.find("state.momentum_buffer/" + parameter),
                      *const theirs = right_->step.tensors.find("state.momentum_buffer/" + parameter);
  if (mine && theirs && mine->sketch.size() == theirs->sketch.size())
    moved = std::sqrt(moved * moved + std::pow(distance(mine->sketch, theirs->sketch), 2));
  const double steps = group == groups_.end() ? 5 : number_of(*group->second, "ns_steps", 5);
  return length > 0 ? std::pow(3.4445, steps) * moved / length : 0;
}

bool Bounds::is_longer(const std::string& parameter, const Sketch& a, const Sketch& b, double distance) const {
  return muon_.contains(parameter) &&
         std::fabs(norm(b) / norm(a) - 1) > std::max(rounding("BF16"), distance * distance);
}

/// Adam divides by the gradient's size: if that is rounding, so is the sign of the update, for a share of elements like
/// the gradient's relative error. Muon computes in bfloat16.
double Bounds::usual_update(const std::string& parameter, double gradient) const {
  const auto has = [&](const std::string& place) {
    return left_->step.tensors.find(place + parameter) || right_->step.tensors.find(place + parameter);
  };
  const auto measured = gradients_.find(parameter);
  const double seen = std::max(measured == gradients_.end() ? 0 : measured->second, rounding("F32") / 16);
  double most = 4 * gradient;
  if (has("state.exp_avg_sq/")) most = std::max(most, 4 * std::sqrt(std::min(seen, gradient)) + 4 * gradient);
  if (has("direction/") || muon_.contains(parameter)) most = std::max({most, 2 * rounding("BF16"), turned(parameter)});
  return most;
}

double Bounds::update(const std::string& parameter, double size, double moved) const {
  const Tensor* const after = left_->step.tensors.find("param/" + parameter);
  const std::string dtype = after ? after->dtype : "";
  const bool equal = same_inputs(parameter);
  double most = equal ? sum_rounding(dtype, 16) : usual_update(parameter, gradient(parameter));
  if (equal && muon_.contains(parameter)) most = 2 * rounding("BF16");
  return most + (moved > 0 ? 4 * half_unit(dtype) * size / moved : 0);
}

double Bounds::parameter(const std::string& name, double size, double moved, double apart, std::int64_t steps) const {
  const Tensor* const after = left_->step.tensors.find("param/" + name);
  const double storage = 4 * half_unit(after ? after->dtype : "");
  if (same_inputs(name) && !muon_.contains(name)) return rounding("F32") + storage;
  const double gradient = clean_before_ ? rounding("F32") : this->gradient(name);
  const double most = usual_update(name, gradient) * moved * static_cast<double>(steps) + apart;
  return storage + (size > 0 ? most / size : 0);
}

bool Bounds::is_factor(const Sketch& a, const Sketch& b, double distance, double bound, std::int64_t elements) const {
  if (!(distance > bound / 8) || !(distance > 2 * rounding("F32")) || elements < 16 || a.size() < 8) return false;
  const Fit one = fit({a}, b);
  const double share = a.size() > 8 ? 8 : 16;
  return one.residual < distance / share && std::fabs(one.weights[0] - 1) > 4 * clipped_ + rounding("F32");
}

bool Bounds::are_factors(const std::vector<std::pair<Sketch, Sketch>>& pairs, double bound) const {
  const double least = std::max(bound / 4, 2 * rounding("F32")) + 4 * clipped_;
  int more = 0, less = 0;
  for (std::size_t at = 0; !pairs.empty() && (at + 1) * kSumsOfRange <= pairs.front().first.size(); ++at) {
    Sketch a, b;
    for (const auto& [left, right] : pairs) {
      const Sketch of_a = range(left, at), of_b = range(right, at);
      a.insert(a.end(), of_a.begin(), of_a.end()), b.insert(b.end(), of_b.begin(), of_b.end());
    }
    const Fit one = fit({a}, b);
    const double off = one.weights[0] - 1;
    // Half of a range and more may be lost where its gradient is little else than rounding.
    if (!(std::fabs(off) > least) || !(std::fabs(off) < 0.5) || !(one.residual < distance(a, b) / 3)) continue;
    ++(off > 0 ? more : less);
  }
  return std::max(more, less) >= 2;
}

}  // namespace zs::probe
