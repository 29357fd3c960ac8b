// SPDX-License-Identifier: Apache-2.0
#include "probe/diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/number.hpp"
#include "probe/negligible.hpp"
#include "probe/premise.hpp"
#include "probe/resume.hpp"

namespace zs::probe {
namespace {

std::string place_of(const std::string& name) { return name.substr(0, name.find('/')); }
std::string parameter_of(const std::string& name) { return name.substr(name.find('/') + 1); }

}  // namespace

class Comparison {
 public:
  Comparison(const Run& a, const Run& b, const Run* floor) : a_(a), b_(b), floor_(floor), samples_(a, b) {}

  /// Compares the steps that B has after those compared before, and says all.
  Diagnosis next() {
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
      said.only.push_back(what.second + " of " + to_text(static_cast<std::int64_t>(count.size())) +
                          " tensors only in " + what.first);
    said.missing.assign(missing_.begin(), missing_.end());
    said.left_out = negligible_.text();
    return said;
  }

  std::int64_t last() const { return last_; }

 private:
  bool done() const { return found_.first.has_value(); }

  /// Counts, and looks at what only one side has.
  const Tensor* pair(const std::string& name, const Tensor& left, const Tensors& right) {
    const Tensor* const other = right.find(name);
    if (!other) {
      lone(name, "A", right);
      return nullptr;
    }
    ++found_.tensors;
    found_.elements += left.held;
    if (!left.same(*other)) ++found_.differing;
    return other;
  }

  /// A gradient is not missing if the other side's optimizer gets the direction computed from it.
  void lone(const std::string& name, const char* side, const Tensors& other) {
    const std::string place = place_of(name);
    const bool frozen = a_.frozen.contains(parameter_of(name)) && b_.frozen.contains(parameter_of(name));
    if ((place == "param" && !frozen) || (place == "grad" && !other.find("direction/" + parameter_of(name))))
      missing_.insert(name + " is only in " + side);
    else
      only_[{side, place}].insert(parameter_of(name));
  }

  /// The type in which a parameter's gradient was computed.
  static std::string computed(const Side& side, const std::string& parameter) {
    std::string dtype = side.step.computed;
    for (const auto& [key, local] : side.step.locals) {
      if (const Tensor* const found = local.tensors.find(parameter)) dtype = coarser(dtype, found->dtype);
    }
    for (const char* place : {"grad/", "model/"}) {
      if (const Tensor* const found = side.step.tensors.find(place + parameter)) dtype = coarser(dtype, found->dtype);
    }
    return dtype;
  }

  double bound(const Side& a, const Side& b, const std::string& parameter, const std::string& place = "grad") const {
    const std::string dtype = coarser(computed(a, parameter), computed(b, parameter));
    return rounding(dtype) +
           grown(a.step.tensors, floor_step_ ? &floor_step_->tensors : nullptr, place + "/" + parameter);
  }

  /// Differences from earlier steps grow with each step: as far as the floor's, or, by estimate, the gradients' at most
  /// some tens of times the parameters'.
  double grown(const Tensors& mine, const Tensors* moved, const std::string& name) const {
    const Tensor *const left = mine.find(name), *const right = moved ? moved->find(name) : nullptr;
    if (!left || !right || left->sketch.size() != right->sketch.size()) return 50 * drift_;
    return kFloors * distance(left->sketch, right->sketch);
  }

  /// Draws a distance on the map, of a parameter's module.
  void draw(std::int64_t step, const std::string& place, const std::string& name, double ratio) {
    const std::string module = place == "output" ? name : name.substr(0, name.rfind('.') + 1);
    const auto [of_module, added] =
        found_.map.modules.try_emplace(module.ends_with('.') ? module.substr(0, module.size() - 1)
                                       : module.empty()      ? name
                                                             : module);
    if (added) found_.map.order.push_back(of_module->first);
    for (double* const most : {&of_module->second[step], &found_.map.places[place][step]})
      *most = std::max(*most, std::isfinite(ratio) ? ratio : 1e9);
  }

  void near(double ratio, const std::string& at) {
    if (!done() && ratio > found_.nearest) found_.nearest = ratio, found_.nearest_at = at;
  }

  void starts() {
    for (const auto& [step, left] : a_.starts) {
      if (begun_.contains(step)) continue;
      const auto right = b_.starts.find(step);
      const auto kept = b_.steps.find(step);
      const Tensors* const other = right != b_.starts.end() ? &right->second
                                   : kept != b_.steps.end() ? &kept->second.tensors
                                                            : nullptr;
      if (other) begun_.insert(step), start(step, left, *other);
    }
  }

  void generators(std::int64_t number, const Side& a, const Side& b) {
    const std::string text = generators_apart(number, a, b);
    if (text.empty()) return;
    if (done() && found_.first->step == number && found_.first->place != "resume")
      found_.first->relation += "; " + text;
    else
      found_.notes.push_back("step " + to_text(number) + ": " + text + ", and no value shows it");
  }

  /// The beginning of a training: parameters are those that were loaded or drawn.
  void start(std::int64_t step, const Tensors& left, const Tensors& right) {
    std::vector<Apart> apart;
    std::size_t of = 0;
    for (const auto& [name, tensor] : left.all()) {
      if (!name.starts_with("param/")) continue;
      const Tensor* const other = right.find(name);
      if (!other || other->sketch.size() != tensor.sketch.size()) continue;
      ++of;
      const double by = distance(tensor.sketch, other->sketch),
                   most = rounding(coarser(tensor.dtype, other->dtype)) / 4;
      const double allowed = std::max(most, master_rounding(name));
      drift_ = std::max(drift_, std::min(by, allowed) * 0.02);
      if (!(by <= allowed)) apart.push_back({parameter_of(name), &tensor.sketch, &other->sketch, by, allowed});
    }
    if (apart.empty()) return;
    Finding finding = made(step, "start", apart, of);
    finding.relation = "the parameters differ before the first step";
    std::set<std::string> factors;
    for (const Apart& t : apart) {
      const Fit one = fit({*t.a}, *t.b);
      factors.insert(one.residual <= t.bound ? factor_text(one.weights[0], {}, t.bound / 4) : "");
    }
    if (factors.size() == 1 && !factors.contains("")) finding.relation += ": " + *factors.begin();
    found_.first = finding;
  }

  /// Masters that were made of parameters of 16 bits are rounded.
  double master_rounding(const std::string& name) const {
    for (const Run* run : {&a_, &b_}) {
      if (run->steps.empty()) continue;
      const Step& first = run->steps.begin()->second;
      const Tensor* const low = first.tensors.find("model/" + parameter_of(name));
      if (low && (low->dtype == "BF16" || low->dtype == "F16")) return low->dtype == "BF16" ? 0x1p-8 : 0x1p-11;
    }
    return 0;
  }

  void step(std::int64_t number, const Side& a, const Side& b) {
    std::map<std::string, std::vector<std::pair<std::string, const Tensor*>>> by_place;  // of A, with B's
    std::map<std::string, std::vector<const Tensor*>> others;
    for (const auto& [name, tensor] : a.step.tensors.all()) {
      const Tensor* const other = pair(name, tensor, b.step.tensors);
      if (!other || other->sketch.size() != tensor.sketch.size()) {
        if (other && !done()) sized(number, name);
        continue;
      }
      by_place[place_of(name)].emplace_back(parameter_of(name), &tensor);
      others[place_of(name)].push_back(other);
    }
    for (const auto& [name, tensor] : b.step.tensors.all()) {
      if (!a.step.tensors.find(name)) lone(name, "B", a.step.tensors);
    }
    const auto linear = [&](const std::string& place, double times) {
      if (!by_place.contains(place)) return;
      std::vector<Apart> apart;
      const auto& mine = by_place[place];
      for (std::size_t i = 0; i < mine.size(); ++i) {
        const Sketch &left = mine[i].second->sketch, &right = others[place][i]->sketch;
        Sketch of_a = left, of_b = right;
        if (!negligible_.judged(place, mine[i].first, of_a, of_b)) continue;
        const double most = times * bound(a, b, mine[i].first, place), by = distance(of_a, of_b);
        if (place == "grad") gradient_distance_[mine[i].first] = by;
        draw(number, place, mine[i].first, by / most);
        if (!(by <= most) || b_.replicas.contains({number, place + "/" + mine[i].first}))
          apart.push_back({mine[i].first, &left, &right, by, most});
        else
          near(by / most, "step " + to_text(number) + ", " + place + " of " + mine[i].first);
      }
      if (done() || apart.empty()) return;
      Finding finding = made(number, place, apart, mine.size());
      if (std::any_of(apart.begin(), apart.end(), [](const Apart& t) { return !(t.distance <= t.bound); }))
        explain_gradients(place, apart, a, b, finding);
      replicas(finding);
      found_.first = finding;
    };
    const auto first = [&](std::optional<Finding> finding) {
      if (!done() && finding) found_.first = std::move(finding);
    };
    negligible_.step(a, b, [&](const std::string& parameter) {
      return rounding(coarser(computed(a, parameter), computed(b, parameter)));
    });
    first(resumed_apart(number, a_, b_));
    if (found_.steps == 1) first(parameters_apart(number, a, b));
    first(found_apart(number, a, b));
    outputs(number, a, b);
    locals(number, a, b);
    linear("grad", 1);
    // A different gradient of a micro-batch counts if its sum differs: without an effect on the sum it is rounding.
    if (done() && local_ && found_.first->relation.starts_with("no simple")) found_.first = local_;
    batch(number, a, b);
    linear("direction", 4);
    first(options_apart(number, a, b));
    for (const auto& [place, tensors] : by_place) {
      // Under another optimizer the state is another, which its update shows more plainly.
      if (place.starts_with("state.")) state_apart(number, place, by_place[place], others[place], a, b);
    }
    updates(number, a, b);
    if (!done() && pending_) found_.first = pending_;
    pending_.reset();
    linear("model", 2);
    first(copies_apart(number, b, "B"));
    first(copies_apart(number, a, "A"));
    generators(number, a, b);
  }

  /// Other samples, or other labels of them, make other gradients: the first difference is in them.
  void batch(std::int64_t number, const Side& a, const Side& b) {
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
    other->parameter = seen.parameter, other->tensors = seen.tensors, other->of = seen.of;
    other->distance = seen.distance, other->bound = seen.bound, other->residual = seen.residual;
    if (!seen.relation.starts_with("no simple")) other->relation += "; gradients: " + seen.relation;
    found_.first = std::move(other);
  }

  /// Says which ranks of B hold something else than the first.
  void replicas(Finding& finding) const {
    for (const std::string& parameter : finding.tensors) {
      const auto apart = b_.replicas.find({finding.step, finding.place + "/" + parameter});
      if (apart == b_.replicas.end()) continue;
      finding.relation += (finding.relation.empty() ? "rank " : "; rank ") + std::to_string(apart->second.second) +
                          " holds other values than rank " + std::to_string(apart->second.first);
      return;
    }
  }

  void sized(std::int64_t number, const std::string& name) {
    Finding finding;
    finding.step = number;
    finding.place = place_of(name);
    finding.parameter = parameter_of(name);
    finding.tensors = {finding.parameter};
    finding.relation = "another shape";
    finding.distance = 2;
    found_.first = finding;
  }

  /// Compares the outputs of modules for each common sample, on any rank, in the order of completion.
  void outputs(std::int64_t number, const Side& a, const Side& b) {
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
      const std::string dtype = coarser(coarser(left.dtype, right->dtype), coarser(a.step.computed, b.step.computed));
      const double most = rounding(dtype) + grown(a.step.outputs, floor_step_ ? &floor_step_->outputs : nullptr, name),
                   by = distance(left.sketch, right->sketch);
      draw(number, "output", module, by / most);
      if (!(by <= most))
        by_module[module].push_back({parameter_of(name), &left.sketch, &right->sketch, by, most});
      else
        near(by / most, "step " + to_text(number) + ", output of " + module);
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
    finding.relation += ", in " + to_text(static_cast<std::int64_t>(apart.size())) + " of " +
                        to_text(static_cast<std::int64_t>(samples.at(*first))) + " samples";
    found_.first = finding;
  }

  /// Each micro-batch's own gradient, whatever it is divided by: contributions are matched by their direction.
  void locals(std::int64_t number, const Side& a, const Side& b) {
    local_.reset();
    if (done() || a.step.locals.empty() || a.step.locals.size() != b.step.locals.size()) return;
    std::set<const Contribution*> taken;
    for (const auto& [key, left] : a.step.locals) {
      const Contribution* best = nullptr;
      double most = 0.9;
      for (const auto& [other, right] : b.step.locals) {
        double along = 0, x = 0, y = 0;
        for (const auto& [name, tensor] : left.tensors.all()) {
          const Tensor* const its = right.tensors.find(name);
          if (!its || its->sketch.size() != tensor.sketch.size()) continue;
          along += dot(tensor.sketch, its->sketch);
          x += dot(tensor.sketch, tensor.sketch);
          y += dot(its->sketch, its->sketch);
        }
        const double cosine = x > 0 && y > 0 ? std::fabs(along) / std::sqrt(x * y) : 0;
        if (cosine > most && !taken.contains(&right)) most = cosine, best = &right;
      }
      if (!best) return;  // cut otherwise into micro-batches, or experts of another mesh: sums are compared below
      taken.insert(best);
      std::vector<Apart> apart;
      for (const auto& [name, tensor] : left.tensors.all()) {
        const Tensor* const its = best->tensors.find(name);
        if (!its || its->sketch.size() != tensor.sketch.size() || !(norm(tensor.sketch) > 0)) continue;
        Sketch of_a = tensor.sketch, of_b = its->sketch;
        if (!negligible_.judged("local", name, of_a, of_b)) continue;
        const double rest = fit({of_a}, of_b).residual, allowed = 2 * bound(a, b, name);
        if (!(rest <= allowed))
          apart.push_back({name, &tensor.sketch, &its->sketch, rest, allowed});
        else
          near(rest / allowed,
               "step " + to_text(number) + ", micro-batch " + std::to_string(key.second) + " of " + name);
      }
      if (apart.empty()) continue;
      local_ = made(number, "local", apart, left.tensors.all().size());
      local_->relation = "no simple relation";
      local_->residual = apart.front().distance;
      return;
    }
  }

  void state_apart(std::int64_t number, const std::string& place,
                   const std::vector<std::pair<std::string, const Tensor*>>& mine,
                   const std::vector<const Tensor*>& theirs, const Side& a, const Side& b) {
    if (done() || pending_) return;
    std::vector<Apart> apart;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const Sketch &left = mine[i].second->sketch, &right = theirs[i]->sketch;
      Sketch of_a = left, of_b = right;
      if (!negligible_.judged(place, mine[i].first, of_a, of_b)) continue;
      const double most = 4 * bound(a, b, mine[i].first, place), by = distance(of_a, of_b);
      if (!(by <= most)) apart.push_back({mine[i].first, &left, &right, by, most});
    }
    if (apart.empty()) return;
    Finding finding = made(number, place, apart, mine.size());
    explain_gradients(place, apart, a, b, finding);
    pending_ = finding;
  }

  const Tensors* before(const Run& run, const Side& side, std::int64_t number) const {
    const auto start = run.starts.find(number - 1);
    if (start != run.starts.end()) return &start->second;
    return side.previous && last_ == number - 1 ? &side.previous->tensors : nullptr;
  }

  void updates(std::int64_t number, const Side& a, const Side& b) {
    const Tensors *from_a = before(a_, a, number), *from_b = before(b_, b, number);
    std::vector<Update> apart;
    std::size_t of = 0;
    double moved = 0, size = 0;
    for (const auto& [name, after] : a.step.tensors.all()) {
      if (!name.starts_with("param/")) continue;
      const Tensor* const other = b.step.tensors.find(name);
      if (!other || other->sketch.size() != after.sketch.size()) continue;
      Sketch now_a = after.sketch, now_b = other->sketch;
      negligible_.leave_out(parameter_of(name), now_a, now_b);
      const double by = distance(now_a, now_b);
      moved += by * by * dot(now_a, now_a), size += dot(now_a, now_a);
      const Tensor* const old_a = from_a ? from_a->find(name) : nullptr;
      const Tensor* const old_b = from_b ? from_b->find(name) : nullptr;
      if (!old_a || !old_b || old_a->sketch.size() != after.sketch.size() ||
          old_b->sketch.size() != after.sketch.size())
        continue;
      ++of;
      Update u{parameter_of(name), after.sketch, other->sketch, old_b->sketch, 0, 0};
      for (std::size_t i = 0; i < u.a.size(); ++i) u.a[i] -= old_a->sketch[i], u.b[i] -= old_b->sketch[i];
      Sketch of_a = u.a, of_b = u.b;
      const bool judged = negligible_.judged("update", u.parameter, of_a, of_b);
      u.distance = judged ? distance(of_a, of_b) : 0;
      u.bound = update_bound(a, b, u, norm(after.sketch));
      if (const Sketch moved_by = floor_update(number, name); moved_by.size() == u.a.size())
        u.bound = std::max(u.bound, kFloors * distance(u.a, moved_by));
      draw(number, "update", u.parameter, u.distance / u.bound);
      if (!(u.distance <= u.bound) || b_.replicas.contains({number, name}))
        apart.push_back(std::move(u));
      else
        near(u.distance / u.bound, "step " + to_text(number) + ", update of " + u.parameter);
    }
    if (done()) return;  // differences after a fault are no rounding
    drift_ = std::max(drift_, size > 0 ? std::sqrt(moved / size) : 0);
    if (apart.empty()) return;
    std::vector<Apart> told;
    for (const Update& u : apart) told.push_back({u.parameter, &u.a, &u.b, u.distance, u.bound});
    Finding finding = made(number, "update", told, of);
    if (std::any_of(apart.begin(), apart.end(), [](const Update& u) { return !(u.distance <= u.bound); }))
      explain_updates(apart, a, b, finding);
    finding.place = "param", replicas(finding), finding.place = "update";
    // A different state comes before the update, but it means less if the update has a simple relation.
    found_.first = pending_ && finding.relation.starts_with("no simple") ? *pending_ : finding;
  }

  /// The floor's update of a parameter; empty if unknown.
  Sketch floor_update(std::int64_t number, const std::string& name) const {
    if (!floor_step_) return {};
    const auto start = floor_->starts.find(number - 1);
    const auto previous = floor_->steps.find(number - 1);
    const Tensors* const before = start != floor_->starts.end()     ? &start->second
                                  : previous != floor_->steps.end() ? &previous->second.tensors
                                                                    : nullptr;
    const Tensor *const now = floor_step_->tensors.find(name), *const old = before ? before->find(name) : nullptr;
    if (!now || !old || now->sketch.size() != old->sketch.size()) return {};
    Sketch update = now->sketch;
    for (std::size_t i = 0; i < update.size(); ++i) update[i] -= old->sketch[i];
    return update;
  }

  /// Adam divides by the gradient's size: if that is rounding, so is the sign of the update, for a share of elements
  /// like the gradient's relative error. Muon computes in bfloat16.
  double update_bound(const Side& a, const Side& b, const Update& u, double size) const {
    const double gradient = bound(a, b, u.parameter);
    const bool divides = a.step.tensors.find("state.exp_avg_sq/" + u.parameter) ||
                         b.step.tensors.find("state.exp_avg_sq/" + u.parameter);
    const bool muon =
        a.step.tensors.find("direction/" + u.parameter) || b.step.tensors.find("direction/" + u.parameter);
    const auto measured = gradient_distance_.find(u.parameter);
    const double seen = std::max(measured == gradient_distance_.end() ? 0 : measured->second, rounding("F32") / 16);
    double most = 4 * gradient;
    if (divides) most = std::max(most, 4 * std::sqrt(std::min(seen, gradient)) + 4 * gradient);
    if (muon) most = std::max(most, 2 * rounding("BF16"));
    const double least = std::max(norm(u.a), norm(u.b));
    return most + (least > 0 ? 4 * 0x1p-24 * size / least : 0);
  }

  static constexpr double kFloors = 8;  // so many times as far apart as the floor is rounding

  const Run &a_, &b_;
  const Run* floor_;
  const Step* floor_step_ = nullptr;
  Samples samples_;
  Diagnosis found_;
  std::map<std::string, double> gradient_distance_;
  std::map<std::pair<std::string, std::string>, std::set<std::string>> only_;
  std::set<std::string> missing_;
  std::optional<Finding> pending_, local_;
  Negligible negligible_;
  std::set<std::int64_t> begun_;  // starts that were compared
  const Step *before_a_ = nullptr, *before_b_ = nullptr;
  std::int64_t last_ = -1;
  double drift_ = 0;
  bool targets_told_ = false;
};

Diagnosis diagnose(const Run& a, const Run& b, const Run* floor) { return Comparison(a, b, floor).next(); }

Diagnosing::Diagnosing(const Run& a, const Run& b, const Run* floor)
    : comparison_(std::make_unique<Comparison>(a, b, floor)) {}
Diagnosing::~Diagnosing() = default;
Diagnosis Diagnosing::next() { return comparison_->next(); }
std::int64_t Diagnosing::last() const { return comparison_->last(); }

}  // namespace zs::probe
