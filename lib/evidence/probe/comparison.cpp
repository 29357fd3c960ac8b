// SPDX-License-Identifier: Apache-2.0
#include "probe/comparison.hpp"

#include <algorithm>
#include <cmath>

#include "base/number.hpp"
#include "base/words.hpp"
#include "probe/options.hpp"
#include "tensorfile/tensor.hpp"

namespace zs::probe {
namespace {

/// Parameters alone, and each as if it had been a 16-bit weight in between.
bool is_rounded(const std::vector<Apart>& apart) {
  return std::ranges::all_of(apart, [](const Apart& one) {
    return one.parameter.starts_with("param/") && like_rounding(one.distance, "BF16");
  });
}

/// Checks that a resumed training begins with its saved state; reports the first side that does not.
std::optional<Finding> resumed_apart(std::int64_t number, const Run& a, const Run& b) {
  for (const auto& [run, side] : {std::pair{&a, "A"}, {&b, "B"}}) {
    const auto start = run->starts.find(number - 1);
    const auto left = run->steps.find(number - 1);
    if (start == run->starts.end() || left == run->steps.end()) continue;
    std::vector<Apart> apart;
    std::vector<std::string> lost;
    std::size_t total = 0;
    for (const auto& [name, tensor] : left->second.tensors.all()) {
      if (!name.starts_with("param/") && !name.starts_with("state.")) continue;
      ++total;
      const Tensor* const now = start->second.find(name);
      if (!now)
        lost.push_back(name);
      else if (!now->same(tensor) && now->sketch.size() == tensor.sketch.size())
        apart.push_back({name, &tensor.sketch, &now->sketch, distance(tensor.sketch, now->sketch), 0});
    }
    const auto told = run->counted.find(number - 1);
    const bool miscounts = told != run->counted.end() && told->second != number - 1;
    if (apart.empty() && lost.empty() && !miscounts) continue;
    Finding finding;
    if (!apart.empty()) finding = made(number, "resume", apart, total);
    finding.step = number, finding.place = "resume", finding.total = total;
    if (apart.empty()) finding.parameter = "the step counter", finding.distance = 1;
    if (apart.empty() && !lost.empty()) finding.parameter = lost.front(), finding.tensors = lost;
    std::vector<std::string> what;
    if (!lost.empty()) what.push_back(std::to_string(lost.size()) + " tensors of the optimizer's state are gone");
    if (!apart.empty())
      what.push_back(
          std::to_string(apart.size()) + " tensors have other values" +
          (is_rounded(apart) ? ", as far apart as rounding to bfloat16 leaves: were the float32 masters kept?" : ""));
    if (miscounts) what.push_back("its counter says " + to_text(told->second) + " steps after " + to_text(number - 1));
    finding.relation = std::string(side) + " did not resume what it left: " + joined(what);
    return finding;
  }
  return std::nullopt;
}

}  // namespace

Diagnosis Comparison::next() {
  starts();
  samples_.grow(last_);
  for (auto left = a_.steps.upper_bound(last_); left != a_.steps.end(); ++left) {
    const auto right = b_.steps.find(left->first);
    if (right == b_.steps.end()) continue;
    ++found_.steps;
    const auto known = floor_ ? floor_->steps.find(left->first) : b_.steps.end();
    floor_step_ = floor_ && known != floor_->steps.end() ? &known->second : nullptr;
    step(left->first, {a_, left->second, before_a_}, {b_, right->second, before_b_});
    before_a_ = &left->second, before_b_ = &right->second;
    last_ = left->first;
  }
  Diagnosis said = found_;
  for (const auto& [what, count] : only_)
    said.only.push_back(what.second + " of " + std::to_string(count.size()) + " tensors only in " + what.first);
  for (const auto& [side, copies] : copies_) {
    const std::string text = "the forward pass of " + side + " computes with copies of " +
                             counted(copies.names.size(), "parameter") +
                             " (model), that of the other side with the parameters themselves";
    if (copies.same)
      said.notes.push_back(text + ": all have the same bits");
    else
      said.only.push_back(text + "; `zs-verify " + side + "` checks that they are the rounded parameters");
  }
  said.missing.assign(missing_.begin(), missing_.end());
  said.left_out = negligible_.text();
  return said;
}

/// Counts, and looks at what only one side has.
const Tensor* Comparison::pair(const std::string& name, const Tensor& left, const Tensors& right) {
  const Tensor* const other = right.find(name);
  if (!other) {
    lone(name, left, "A", right);
    return nullptr;
  }
  ++found_.tensors;
  found_.elements += left.held;
  if (!left.same(*other)) ++found_.differing;
  return other;
}

/// A gradient is not missing if the other side's optimizer gets the direction computed from it.
/// The copy with which one side's forward pass computes is compared with the other's parameter, with which that
/// computes.
void Comparison::lone(const std::string& name, const Tensor& tensor, const char* side, const Tensors& other) {
  const std::string place = place_of(name);
  if (place == "model") {
    const Tensor* const parameter = other.find("param/" + parameter_of(name));
    copies_[side].names.insert(parameter_of(name));
    copies_[side].same &= parameter && parameter->same(tensor);
    return;
  }
  const bool frozen = a_.frozen.contains(parameter_of(name)) && b_.frozen.contains(parameter_of(name));
  if ((place == "param" && !frozen) || (place == "grad" && !other.find("direction/" + parameter_of(name))))
    missing_.insert(name + " is only in " + side);
  else
    only_[{side, place}].insert(parameter_of(name));
}

/// Draws a distance on the map, of a parameter's module.
void Comparison::draw(std::int64_t step, const std::string& place, const std::string& name, double ratio) {
  const std::string module = place == "output" ? name : name.substr(0, name.rfind('.') + 1);
  const auto [of_module, added] =
      found_.map.modules.try_emplace(module.ends_with('.') ? module.substr(0, module.size() - 1)
                                     : module.empty()      ? name
                                                           : module);
  if (added) found_.map.order.push_back(of_module->first);
  for (double* const most : {&of_module->second[step], &found_.map.places[place][step]})
    *most = std::max(*most, std::isfinite(ratio) ? ratio : 1e9);
}

void Comparison::judge(const std::string& name, double distance, double bound, const std::string& at, double moved) {
  if (done()) return;
  found_.judged[name] = std::max(found_.judged[name], bound + moved);
  const double ratio = bound > 0 ? distance / bound : 0;
  if (ratio > found_.nearest) found_.nearest = ratio, found_.nearest_at = at;
}

void Comparison::starts() {
  for (const auto& [step, left] : a_.starts) {
    if (begun_.contains(step)) continue;
    const auto right = b_.starts.find(step);
    const auto kept = b_.steps.find(step);
    const Tensors* const other = right != b_.starts.end() ? &right->second
                                 : kept != b_.steps.end() ? &kept->second.tensors
                                                          : nullptr;
    if (other) begun_.insert(step), start(step, left, *other);
  }
  for (const auto& [step, right] : b_.starts) {  // B resumed where A continued
    const auto kept = a_.steps.find(step);
    if (begun_.contains(step) || kept == a_.steps.end()) continue;
    begun_.insert(step), start(step, kept->second.tensors, right, false);  // resumed_apart() reports it
  }
}

/// The beginning of a training: parameters are those that were loaded or drawn.
void Comparison::start(std::int64_t step, const Tensors& left, const Tensors& right, bool tell) {
  std::vector<Apart> apart;
  std::size_t total = 0;
  for (const auto& [name, tensor] : left.all()) {
    const bool parameter = name.starts_with("param/");
    if (!parameter && !name.starts_with("state.") && !name.starts_with("buffer/")) continue;
    const Tensor* const other = right.find(name);
    if (!other || !tensor.whole() || !other->whole()) continue;  // a part that is missing is a fault of the recording
    if (other->sketch.size() != tensor.sketch.size() || other->shape != tensor.shape) {
      if (!done() && tell) sized(step, name, tensor, *other);
      continue;
    }
    total += parameter;
    if (parameter) parameters_[name] = {step, tensor.sketch, other->sketch};
    if (tensor.same(*other)) continue;
    bounds_.differed();
    const double by = distance(tensor.sketch, other->sketch), most = rounding(coarser(tensor.dtype, other->dtype)) / 4;
    const double allowed = parameter ? std::max(most, master_rounding(name)) : 4 * most;
    if (parameter) bounds_.drifted(std::min(by, allowed) * 0.02);
    if (!(by <= allowed))
      apart.push_back({parameter ? parameter_of(name) : name, &tensor.sketch, &other->sketch, by, allowed});
    else
      judge(start_thing(step, name), by, allowed, "start, " + name);
  }
  if (apart.empty() || done() || !tell) return;
  const bool parameters = std::any_of(apart.begin(), apart.end(),
                                      [](const Apart& t) { return t.parameter.find('/') == std::string::npos; });
  if (parameters) std::erase_if(apart, [](const Apart& t) { return t.parameter.find('/') != std::string::npos; });
  Finding finding = made(step, "start", apart, total);
  if (!parameters) finding.place = place_of(finding.parameter), finding.parameter = parameter_of(finding.parameter);
  const bool moved = finding.place == "buffer";  // a recording starts in the first backward
  finding.step += moved;
  finding.relation = moved        ? "differs after the first forward pass, where the recording starts"
                     : parameters ? "the parameters differ before the first step"
                                  : "the optimizer's state differs before the first step";
  std::set<std::string> factors;
  for (const Apart& t : apart) {
    const Fit one = fit({*t.a}, *t.b);
    factors.insert(one.residual <= t.bound ? factor_text(one.weights[0], {}, t.bound / 4) : "");
  }
  if (factors.size() == 1 && !factors.contains("")) finding.relation += ": " + *factors.begin();
  // Some optimizers fill their state before their first step: what went into it comes first.
  (parameters ? found_.first : begun_apart_) = finding;
}

/// Masters that were made of parameters of 16 bits are rounded.
double Comparison::master_rounding(const std::string& name) const {
  for (const Run* run : {&a_, &b_}) {
    if (run->steps.empty()) continue;
    const Step& first = run->steps.begin()->second;
    const Tensor* const low = first.tensors.find("model/" + parameter_of(name));
    if (low && (low->dtype == "BF16" || low->dtype == "F16")) return low->dtype == "BF16" ? 0x1p-8 : 0x1p-11;
  }
  return 0;
}

void Comparison::step(std::int64_t number, const Side& a, const Side& b) {
  std::map<std::string, Paired> by_place;
  bool same = true;
  for (const auto& [name, tensor] : a.step.tensors.all()) {
    const Tensor* const other = pair(name, tensor, b.step.tensors);
    if (other && (!tensor.whole() || !other->whole())) continue;
    if (!other || other->sketch.size() != tensor.sketch.size() || other->shape != tensor.shape) {
      if (other && !done()) sized(number, name, tensor, *other);
      continue;
    }
    same &= tensor.same(*other);
    by_place[place_of(name)].emplace_back(parameter_of(name), std::pair{&tensor, other});
  }
  for (const auto& [name, tensor] : b.step.tensors.all()) {
    if (!a.step.tensors.find(name)) lone(name, tensor, "B", a.step.tensors);
  }
  bounds_.begin(number, a, b, before(a_, number), before(b_, number));
  negligible_.step(a, b, [&](const std::string& parameter) { return bounds_.gradient(parameter, "unit"); });
  first(resumed_apart(number, a_, b_));
  if (found_.steps == 1) first(parameters_apart(number, a, b));
  first(found_apart(number, a, b));
  for (const char* const place : {"begin", "begin.model"}) begun(number, place, by_place[place]);
  buffers(number, by_place["buffer"]);
  outputs(number, a, b);
  locals(number, a, b);
  linear(number, "grad", by_place["grad"], a, b);
  if (auto sliced = std::exchange(sliced_, std::nullopt);
      sliced && (!done() || found_.first->relation.starts_with("no simple")))
    found_.first = std::move(sliced);
  // A different gradient of a micro-batch counts if its sum differs: without an effect on the sum it is rounding.
  if (done() && local_ && found_.first->relation.starts_with("no simple")) found_.first = local_;
  batch(number, a, b);
  linear(number, "direction", by_place["direction"], a, b);
  first(options_apart(number, a, b));
  for (const auto& [place, tensors] : by_place) {
    // Under another optimizer the state is another, which its update shows more plainly.
    if (place.starts_with("state.")) state_apart(number, place, tensors, a, b);
  }
  updates(number, a, b);
  if (!done() && pending_) found_.first = pending_;
  pending_.reset();
  linear(number, "model", by_place["model"], a, b);
  first(copies_apart(number, b, "B"));
  first(copies_apart(number, a, "A"));
  first(std::exchange(buffer_, std::nullopt));
  first(std::exchange(begun_apart_, std::nullopt));
  for (const bool norm : {false, true}) {
    if (!done()) found_.judged[thing(number, norm ? "norm" : "number")] = bounds_.number(norm);
  }
  if (!same && !done() && bounds_.clean() && found_.steps > 1 && a_.layout == b_.layout && a_.ranks == b_.ranks)
    found_.notes.push_back("step " + to_text(number) + " is the first with other bits, in one layout: kernels that " +
                           "do not repeat their bits, or a training that computes something else from this step on");
  if (!same) bounds_.differed();
}

double Comparison::bound(const std::string& place, const std::string& parameter) const {
  if (place == "direction") return 4 * bounds_.gradient(parameter, place);
  return place == "model" ? bounds_.copy(parameter) : bounds_.gradient(parameter, place);
}

/// Makes of A's copy the copy of B's parameter, which differs from it by the rounding of both alone. Returns how far
/// apart the parameters are, which were judged before.
double Comparison::copied(const std::string& parameter, Sketch& copy, const Side& a, const Side& b) {
  const std::string name = "param/" + parameter;
  const Tensor *const left = a.step.tensors.find(name), *const right = b.step.tensors.find(name);
  if (!left || !right || left->sketch.size() != copy.size() || right->sketch.size() != copy.size()) return 0;
  for (std::size_t i = 0; i < copy.size(); ++i) copy[i] += right->sketch[i] - left->sketch[i];
  return distance(left->sketch, right->sketch);
}

/// Gradients, directions and copies.
void Comparison::linear(std::int64_t number, const std::string& place, const Paired& tensors, const Side& a,
                        const Side& b) {
  std::vector<Apart> apart;
  for (const auto& [parameter, sides] : tensors) {
    const Sketch &left = sides.first->sketch, &right = sides.second->sketch;
    Sketch of_a = left, of_b = right;
    const std::string name = place + "/" + parameter,
                      at = "step " + to_text(number) + ", " + place + " of " + parameter;
    const double most = bound(place, parameter), moved = place == "model" ? copied(parameter, of_a, a, b) : 0;
    if (!negligible_.judged(place, parameter, of_a, of_b)) {
      judge(thing(number, name), 0, kLeftOut, at);
      continue;
    }
    const double by = distance(of_a, of_b);
    if (place == "grad") bounds_.measured(parameter, by);
    draw(number, place, parameter, by / most);
    if (!(by <= most) || b_.replicas.contains({number, name}) ||
        bounds_.is_factor(of_a, of_b, by, most, sides.first->total) || bounds_.are_factors({{of_a, of_b}}, most))
      apart.push_back({parameter, &left, &right, by, std::min(most, by)});
    else
      judge(thing(number, name), by, most, at, moved);
    if (by > 0 && !done()) found_.computed = coarser(found_.computed, bounds_.computed(parameter));
  }
  if (done() || apart.empty()) return;
  Finding finding = made(number, place, apart, tensors.size());
  if (std::any_of(apart.begin(), apart.end(), [](const Apart& t) { return t.distance > 0; }))
    explain_gradients(place, apart, a, b, finding);
  replicas(finding);
  found_.first = finding;
}

/// Other samples, or other labels of them, make other gradients: the first difference is in them.
void Comparison::batch(std::int64_t number, const Side& a, const Side& b) {
  static const std::set<std::string> kMade{"grad", "local", "output"};
  if (done() && (found_.first->step != number || !kMade.contains(found_.first->place))) return;
  auto other = samples_.apart(number), targets = targets_apart(number, a, b);
  if (!done()) {
    if (targets && !std::exchange(targets_told_, true))
      found_.notes.push_back("step " + to_text(number) + ": " + targets->relation + ", and no gradient shows it");
    return;
  }
  if (other && targets) other->relation += "; " + targets->relation;
  if (!other) other = targets;
  if (!other) return;
  const Finding& seen = *found_.first;
  other->parameter = seen.parameter, other->tensors = seen.tensors, other->total = seen.total;
  other->distance = seen.distance, other->bound = seen.bound, other->residual = seen.residual;
  if (!seen.relation.starts_with("no simple")) other->relation += "; gradients: " + seen.relation;
  found_.first = std::move(other);
}

/// Says which ranks of B hold something else than the first.
void Comparison::replicas(Finding& finding) const {
  for (const std::string& parameter : finding.tensors) {
    const auto apart = b_.replicas.find({finding.step, finding.place + "/" + parameter});
    if (apart == b_.replicas.end()) continue;
    finding.relation += (finding.relation.empty() ? "" : "; ") + replica_text(apart->second);
    return;
  }
}

void Comparison::sized(std::int64_t number, const std::string& name, const Tensor& left, const Tensor& right) {
  Finding finding;
  finding.step = number;
  finding.place = place_of(name);
  finding.parameter = parameter_of(name);
  finding.tensors = {finding.parameter};
  finding.total = 1;
  finding.relation =
      "another shape: " + tensorfile::to_text(right.shape) + " instead of " + tensorfile::to_text(left.shape);
  finding.distance = 2;
  found_.first = finding;
}

}  // namespace zs::probe
