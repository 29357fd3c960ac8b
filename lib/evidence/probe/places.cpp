// SPDX-License-Identifier: Apache-2.0
// Places of a step other than gradients: outputs, micro-batches, state, buffers, updates, parameters.
#include <algorithm>
#include <cmath>

#include "base/number.hpp"
#include "probe/comparison.hpp"
#include "probe/matching.hpp"

namespace zs::probe {
namespace {

constexpr double kUseless = 0.25;  // a bound of a parameter's norm that proves nothing

/// How much further apart two tensors are than their ranges that count: the elements of the others may differ so far.
double of_left_out(const Sketch& a, const Sketch& b, double by) { return std::max(0.0, distance(a, b) - by); }

}  // namespace

/// Compares the outputs of modules for each common sample, on any rank, in the order of completion.
void Comparison::outputs(std::int64_t number, const Side& a, const Side& b) {
  std::map<std::string, std::vector<Apart>> by_module;
  std::map<std::string, std::size_t> samples;
  std::vector<std::string> order;
  for (const auto& [name, left] : a.step.outputs.all()) {
    const std::string module = place_of(name);
    const Tensor* const right = b.step.outputs.find(name);
    if (!right || right->sketch.size() != left.sketch.size() || a_.parted.contains(module) ||
        b_.parted.contains(module)) {
      only_[{right ? "a form of its own" : "A", "output of " + module}].insert(parameter_of(name));
      continue;
    }
    ++found_.outputs;
    if (samples[module]++ == 0) order.push_back(module);
    const double most = bounds_.output(name, coarser(left.dtype, right->dtype)),
                 by = distance(left.sketch, right->sketch);
    draw(number, "output", module, by / most);
    if (!(by <= most))
      by_module[module].push_back({parameter_of(name), &left.sketch, &right->sketch, by, most});
    else
      judge(thing(number, "output " + name), by, most, "step " + to_text(number) + ", output of " + module);
  }
  if (done() || by_module.empty()) return;
  const auto first = std::find_if(order.begin(), order.end(), [&](const auto& m) { return by_module.contains(m); });
  const std::vector<Apart>& apart = by_module.at(*first);
  Finding finding = made(number, "output", apart, order.size());
  finding.parameter = *first;
  finding.tensors.clear();
  for (const std::string& module : order) {
    if (by_module.contains(module)) finding.tensors.push_back(module);
  }
  explain_outputs(a.step.outputs, *first, apart, a, b, finding);
  finding.relation += ", in " + std::to_string(apart.size()) + " of " +
                      to_text(static_cast<std::int64_t>(samples.at(*first))) + " samples";
  found_.first = finding;
}

/// Each micro-batch's own gradient. Its divisor may differ, if it is the same for all: the sum shows it.
void Comparison::locals(std::int64_t number, const Side& a, const Side& b) {
  local_.reset();
  if (done() || a.step.locals.empty() || a.step.locals.size() != b.step.locals.size()) return;
  auto pairs = matched(a.step, b.step);
  if (pairs.size() != a.step.locals.size()) pairs = along(a.step, b.step);
  if (pairs.empty()) return;  // cut otherwise into micro-batches, or experts of another mesh: sums are compared below
  std::vector<double> factors;
  struct Scaled {
    std::string name, at;
    double factor, rest, allowed;
  };
  std::vector<Scaled> scaled;
  std::map<std::string, std::vector<std::pair<Sketch, Sketch>>> of_all;  // by parameter
  for (const auto& [left, right] : pairs) {
    std::vector<Apart> apart;
    const std::string micro = std::to_string(left->by) + "/" + std::to_string(left->micro);
    for (const auto& [name, tensor] : left->tensors.all()) {
      const Tensor* const other = right->tensors.find(name);
      if (!other || other->sketch.size() != tensor.sketch.size()) continue;
      Sketch of_a = tensor.sketch, of_b = other->sketch;
      const double allowed = 2 * bounds_.gradient(name, "local");
      const std::string at = "step " + to_text(number) + ", micro-batch " + std::to_string(left->micro) + " of " + name,
                        what = thing(number, "micro-batch " + micro + ": " + name);
      if (!negligible_.judged("local", name, of_a, of_b)) {
        judge(what, 0, kLeftOut, at);
        continue;
      }
      const double by = distance(of_a, of_b);
      const Fit one = fit({of_a}, of_b);
      of_all[name].emplace_back(of_a, of_b);
      if (by <= allowed && !bounds_.is_factor(of_a, of_b, by, allowed, tensor.total))
        judge(what, by, allowed, at);
      else if (one.residual <= allowed)
        scaled.push_back({what, at, one.weights[0], one.residual, allowed});
      else
        apart.push_back({name, &tensor.sketch, &other->sketch, one.residual, allowed});
    }
    if (apart.empty() || local_) continue;
    local_ = made(number, "local", apart, left->tensors.all().size());
    local_->relation = "no simple relation" + drawing(a, b, number);
    local_->residual = apart.front().distance;
  }
  const bool one_factor = !scaled.empty() && std::all_of(scaled.begin(), scaled.end(), [&](const Scaled& s) {
    return std::fabs(s.factor - scaled.front().factor) <=
           2 * (s.allowed + scaled.front().allowed) * std::fabs(s.factor);
  });
  std::size_t total = 0;
  for (const auto& [left, right] : pairs) total += left->tensors.all().size();
  if (one_factor && scaled.size() == total) {
    for (const Scaled& s : scaled) {
      judge(s.name, s.rest, s.allowed, s.at);
      if (!done()) found_.judged[s.name] = kLeftOut;  // whose norm is another by the factor
    }
    if (!done()) found_.judged[thing(number, "loss factor")] = scaled.front().factor;
  }
  if (!scaled.empty()) return;
  std::vector<Apart> apart;
  for (const auto& [name, both] : of_all) {
    const double bound = bounds_.gradient(name, "local"), by = distance(both.front().first, both.front().second);
    if (by > bound || !bounds_.are_factors(both, bound)) continue;  // beyond the bound it is told as it is
    apart.push_back({name, &both.front().first, &both.front().second, by, bound});
  }
  if (apart.empty()) return;
  sliced_ = made(number, "local", apart, of_all.size());
  sliced_->relation = "parts of it times a factor, in all micro-batches: rounding goes in any direction";
  sliced_->residual = apart.front().distance;
}

void Comparison::state_apart(std::int64_t number, const std::string& place, const Paired& tensors, const Side& a,
                             const Side& b) {
  if (done()) return;
  std::vector<Apart> apart;
  for (const auto& [parameter, sides] : tensors) {
    const Sketch &left = sides.first->sketch, &right = sides.second->sketch;
    Sketch of_a = left, of_b = right;
    const std::string name = thing(number, place + "/" + parameter),
                      at = "step " + to_text(number) + ", " + place + " of " + parameter;
    const double most = bounds_.state(place, parameter);
    if (!negligible_.judged(place, parameter, of_a, of_b)) {
      judge(name, 0, kLeftOut, at);
      continue;
    }
    const double by = distance(of_a, of_b);
    if (!(by <= most) || bounds_.is_factor(of_a, of_b, by, most, sides.first->total))
      apart.push_back({parameter, &left, &right, by, std::min(by, most)});
    else
      judge(name, by, most, at, of_left_out(left, right, by));
  }
  if (apart.empty() || pending_) return;
  Finding finding = made(number, place, apart, tensors.size());
  explain_gradients(place, apart, a, b, finding);
  pending_ = finding;
}

/// Values that a step's forward pass found instead of the last update's, if both sides found other values.
void Comparison::begun(std::int64_t number, const std::string& place, const Paired& tensors) {
  for (const auto& [parameter, sides] : tensors) {
    const double by = distance(sides.first->sketch, sides.second->sketch),
                 most = rounding(coarser(sides.first->dtype, sides.second->dtype));
    if (by <= most)
      judge(thing(number, place + "/" + parameter), by, most,
            "step " + to_text(number) + ", " + place + " of " + parameter);
  }
}

/// Statistics that the forward pass leaves in modules.
void Comparison::buffers(std::int64_t number, const Paired& tensors) {
  std::vector<Apart> apart;
  for (const auto& [name, sides] : tensors) {
    const double by = distance(sides.first->sketch, sides.second->sketch), most = bounds_.buffer(name);
    draw(number, "buffer", name, by / most);
    if (by <= most && !bounds_.is_factor(sides.first->sketch, sides.second->sketch, by, most, sides.first->total))
      judge(thing(number, "buffer/" + name), by, most, "step " + to_text(number) + ", buffer " + name);
    else
      apart.push_back({name, &sides.first->sketch, &sides.second->sketch, by, std::min(by, most)});
  }
  if (apart.empty() || done()) return;
  buffer_ = made(number, "buffer", apart, tensors.size());
  const Fit one = fit({*apart.front().a}, *apart.front().b);
  buffer_->relation =
      one.residual < apart.front().distance / 8 ? factor_text(one.weights[0], {}, 1e-4) : "other values";
  buffer_->residual = one.residual;
}

/// Parameters and state before a step, whether or not the other side has recorded them.
const Tensors* Comparison::before(const Run& run, std::int64_t number) {
  if (const auto start = run.starts.find(number - 1); start != run.starts.end()) return &start->second;
  const auto step = run.steps.find(number - 1);
  return step != run.steps.end() ? &step->second.tensors : nullptr;
}

void Comparison::updates(std::int64_t number, const Side& a, const Side& b) {
  const Tensors *from_a = before(a_, number), *from_b = before(b_, number);
  std::vector<Update> apart;
  std::vector<Apart> direct;
  std::size_t total = 0, held = 0;
  double moved = 0, size = 0;
  for (const auto& [name, after] : a.step.tensors.all()) {
    if (!name.starts_with("param/")) continue;
    const Tensor* const other = b.step.tensors.find(name);
    if (!other || !after.whole() || !other->whole() || other->sketch.size() != after.sketch.size()) continue;
    ++held;
    Sketch now_a = after.sketch, now_b = other->sketch;
    negligible_.leave_out(name.substr(6), now_a, now_b);
    const Tensor* const old_a = from_a ? from_a->find(name) : nullptr;
    const Tensor* const old_b = from_b ? from_b->find(name) : nullptr;
    const double by = distance(now_a, now_b);
    const bool known = old_a && old_b && old_a->whole() && old_b->whole() &&
                       old_a->sketch.size() == after.sketch.size() && old_b->sketch.size() == after.sketch.size();
    if (!known) {
      parameter(number, name, after, *other, now_a, now_b, direct);
    } else {
      ++total;
      Update u{name.substr(6), after.sketch, other->sketch, old_b->sketch, 0, 0};
      for (std::size_t i = 0; i < u.a.size(); ++i) u.a[i] -= old_a->sketch[i], u.b[i] -= old_b->sketch[i];
      Sketch of_a = u.a, of_b = u.b;
      const bool judged = negligible_.judged("update", u.parameter, of_a, of_b);
      u.distance = judged ? distance(of_a, of_b) : 0;
      u.bound = bounds_.update(u.parameter, norm(after.sketch), std::max(norm(u.a), norm(u.b)));
      if (const Sketch moved_by = floor_update(number, name); moved_by.size() == u.a.size())
        u.bound = std::max(u.bound, kFloors * distance(u.a, moved_by));
      draw(number, "update", u.parameter, u.distance / u.bound);
      if (!(u.distance <= u.bound) || b_.replicas.contains({number, name}) ||
          bounds_.is_factor(of_a, of_b, u.distance, u.bound, after.total) ||
          bounds_.is_longer(u.parameter, of_a, of_b, u.distance)) {
        u.bound = std::min(u.bound, u.distance);
        apart.push_back(std::move(u));
      } else {
        judge(thing(number, name), u.distance, u.bound, "step " + to_text(number) + ", update of " + u.parameter);
        const double whole = norm(after.sketch);  // the ledger asks for the bound of the parameter itself
        if (!done() && whole > 0)
          found_.judged[thing(number, name)] = judged ? u.bound * std::max(norm(u.a), norm(u.b)) / whole + by +
                                                            of_left_out(after.sketch, other->sketch, by)
                                                      : kLeftOut;
      }
    }
    if (after.same(*other) || found_.judged.contains(thing(number, name)))
      moved += by * by * dot(now_a, now_a), size += dot(now_a, now_a);
    parameters_[name] = {number, after.sketch, other->sketch};
  }
  if (done()) return;  // differences after a fault are no rounding
  bounds_.drifted(size > 0 ? std::sqrt(moved / size) : 0);
  if (apart.empty() && direct.empty()) return;
  if (apart.empty()) {
    Finding finding = made(number, "param", direct, held);
    const Fit one = fit({*direct.front().a}, *direct.front().b);
    finding.relation = one.residual < direct.front().distance / 8 ? factor_text(one.weights[0], {}, 1e-4)
                                                                  : "other values, and the step before is not recorded";
    finding.residual = one.residual;
    found_.first = finding;
    return;
  }
  std::vector<Apart> told;
  for (const Update& u : apart) told.push_back({u.parameter, &u.a, &u.b, u.distance, u.bound});
  Finding finding = made(number, "update", told, total);
  if (std::any_of(apart.begin(), apart.end(), [](const Update& u) { return u.distance > 0; }))
    explain_updates(apart, a, b, finding);
  finding.place = "param", replicas(finding), finding.place = "update";
  // A different state comes before the update, but it means less if the update has a simple relation.
  found_.first = pending_ && finding.relation.starts_with("no simple") ? *pending_ : finding;
}

/// A parameter whose value before the step is not recorded: by its own distance, and by how far it went since it was
/// recorded last. A bound that is too wide judges nothing.
void Comparison::parameter(std::int64_t number, const std::string& name, const Tensor& left, const Tensor& right,
                           const Sketch& now_a, const Sketch& now_b, std::vector<Apart>& apart) {
  const auto seen = parameters_.find(name);
  if (seen == parameters_.end() || seen->second.a.size() != now_a.size()) return;
  Sketch went_a = left.sketch, went_b = right.sketch, gap = seen->second.a;
  for (std::size_t i = 0; i < gap.size(); ++i) {
    went_a[i] -= seen->second.a[i], went_b[i] -= seen->second.b[i];
    gap[i] -= seen->second.b[i];
  }
  const double by = distance(now_a, now_b);
  const double most = bounds_.parameter(name.substr(6), norm(left.sketch), std::min(norm(went_a), norm(went_b)),
                                        norm(gap), number - seen->second.step);
  draw(number, "param", name.substr(6), by / most);
  if (!(by <= most))
    apart.push_back({name.substr(6), &left.sketch, &right.sketch, by, most});
  else if (most <= kUseless)
    judge(thing(number, name), by, most, "step " + to_text(number) + ", parameter " + name.substr(6),
          of_left_out(left.sketch, right.sketch, by));
}
/// The floor's update of a parameter; empty if unknown.
Sketch Comparison::floor_update(std::int64_t number, const std::string& name) const {
  if (!floor_step_) return {};
  const Tensors* const from = before(*floor_, number);
  const Tensor *const now = floor_step_->tensors.find(name), *const old = from ? from->find(name) : nullptr;
  if (!now || !old || now->sketch.size() != old->sketch.size()) return {};
  Sketch update = now->sketch;
  for (std::size_t i = 0; i < update.size(); ++i) update[i] -= old->sketch[i];
  return update;
}

}  // namespace zs::probe
