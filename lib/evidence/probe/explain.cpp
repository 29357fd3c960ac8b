// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/number.hpp"
#include "base/words.hpp"
#include "probe/causes.hpp"

namespace zs::probe {
namespace {

/// A relation explains a difference if it leaves at most a third of it.
bool explains(double residual, double distance) { return residual <= distance / 3; }

/// The causes that may explain a factor of these parameters.
using CausesOf = std::function<Constants(const std::vector<std::string>&, double)>;

bool one_factor(const std::vector<Apart>& apart, Finding& finding, const CausesOf& causes = {}) {
  struct Alike {
    double factor, tolerance;
    std::vector<std::string> names;
  };
  std::map<std::string, Alike> by_text;
  double worst = 0;
  for (const Apart& t : apart) {
    const double size = dot(*t.a, *t.a);
    if (!(size > 0)) return false;
    const double factor = dot(*t.a, *t.b) / size;
    const double left = residual({*t.a}, {factor}, *t.b);
    // It explains the difference, and is one: a factor of 1 is none.
    if (!(left <= 4 * t.bound) || !explains(left, t.distance)) return false;
    if (std::fabs(factor - 1) <= std::max(1e-6, left)) return false;
    worst = std::max(worst, left);
    const double tolerance = std::max(1e-3, std::min(t.bound, 0.05));
    by_text.try_emplace(factor_text(factor, {}, tolerance), Alike{factor, tolerance, {}})
        .first->second.names.push_back(t.parameter);
  }
  if (by_text.size() > 3) return false;
  for (const auto& [text, alike] : by_text) {
    const std::string named =
        causes ? factor_text(alike.factor, causes(alike.names, alike.factor), alike.tolerance) : text;
    finding.relation +=
        (finding.relation.empty() ? "" : "; ") + named + (by_text.size() > 1 ? " in " + some_of(alike.names, 3) : "");
  }
  finding.residual = worst;
  return true;
}

/// A factor in some ranges, and another in others: what a rank has made of its slice.
bool factors_by_range(const std::vector<Apart>& apart, Finding& finding) {
  std::map<std::string, std::size_t> found;
  std::size_t ranges = 0, fitting = 0;
  double worst = 0;
  for (const Apart& t : apart) {
    for (std::size_t at = 0; (at + 1) * kSumsOfRange <= t.b->size(); ++at) {
      const Fit here = fit({range(*t.a, at)}, range(*t.b, at));
      ++ranges;
      if (!(here.residual <= std::min(16 * t.bound, 0.05))) continue;
      ++fitting;
      worst = std::max(worst, here.residual);
      ++found[factor_text(here.weights[0], {}, std::clamp(4 * t.bound, 1e-3, 0.05))];
    }
  }
  const bool rare = std::any_of(found.begin(), found.end(), [&](const auto& one) { return one.second * 20 < ranges; });
  if (fitting * 10 < ranges * 8 || found.size() < 2 || found.size() > 4 || rare) return false;
  for (const auto& [text, count] : found)
    finding.relation += (finding.relation.empty() ? "by slices: " : ", ") + text + " in " +
                        to_text(static_cast<std::int64_t>(count)) + " of " +
                        to_text(static_cast<std::int64_t>(ranges)) + " ranges";
  finding.residual = worst;
  return true;
}

/// A moment that begins with this step's gradient.
bool begun_again(const std::string& place, const std::vector<Apart>& apart, const Side& b, Finding& finding) {
  if (!place.starts_with("state.")) return false;
  Sketch gradients, target, theirs;
  double most = 1e-3;
  for (const Apart& t : apart) {
    const Tensor* const gradient = b.step.tensors.find("grad/" + t.parameter);
    if (!gradient || gradient->sketch.size() != t.b->size()) return false;
    gradients.insert(gradients.end(), gradient->sketch.begin(), gradient->sketch.end());
    target.insert(target.end(), t.b->begin(), t.b->end());
    theirs.insert(theirs.end(), t.a->begin(), t.a->end());
    most = std::max(most, 4 * t.bound);
  }
  const Fit alone = fit({gradients}, target);
  if (!(alone.residual <= most) || !explains(alone.residual, residual({theirs}, {1}, target))) return false;
  finding.relation = "it was reset: " + to_rounded_text(alone.weights[0], 3) + " x the gradient of this step alone";
  finding.residual = alone.residual;
  return true;
}

bool stale(const std::string& place, const std::vector<Apart>& apart, const Side& a, const Side& b, Finding& finding) {
  if (!a.previous || !b.previous) return false;
  std::vector<Sketch> columns(3);
  Sketch target;
  double most = 0;
  for (const Apart& t : apart) {
    const Tensor* const old_a = a.previous->tensors.find(place + "/" + t.parameter);
    const Tensor* const old_b = b.previous->tensors.find(place + "/" + t.parameter);
    if (!old_a || !old_b || old_a->sketch.size() != t.a->size() || old_b->sketch.size() != t.a->size()) return false;
    columns[0].insert(columns[0].end(), t.a->begin(), t.a->end());
    columns[1].insert(columns[1].end(), old_a->sketch.begin(), old_a->sketch.end());
    columns[2].insert(columns[2].end(), old_b->sketch.begin(), old_b->sketch.end());
    target.insert(target.end(), t.b->begin(), t.b->end());
    most = std::max(most, 4 * t.bound);
  }
  const std::string before = "step " + to_text(finding.step - 1);
  most = std::min(most, residual({columns[0]}, {1}, target) / 3);
  for (const std::size_t old : {std::size_t{2}, std::size_t{1}}) {
    const Fit alone = fit({columns[old]}, target);
    if (alone.residual <= most) {
      finding.relation = "stale: it is that of " + before + " " + factor_text(alone.weights[0], {}, 1e-2);
      finding.residual = alone.residual;
      return true;
    }
    const Fit both = fit({columns[0], columns[old]}, target);
    if (both.residual <= most && std::fabs(both.weights[1]) > 0.05) {
      finding.relation = "stale: the gradient of this step " + factor_text(both.weights[0], {}, 5e-2) +
                         " plus that of " + before + " " + factor_text(both.weights[1], {}, 5e-2) +
                         ": it was not set to zero";
      finding.residual = both.residual;
      return true;
    }
  }
  return false;
}

bool other_parameter(const std::string& place, const std::vector<Apart>& apart, const Side& a, Finding& finding) {
  std::string said;
  double worst = 0;
  for (const Apart& t : apart) {
    bool found = false;
    for (const auto& [name, tensor] : a.step.tensors.all()) {
      if (found || !name.starts_with(place + "/") || name == place + "/" + t.parameter) continue;
      if (tensor.sketch.size() != t.b->size()) continue;
      const double apart_by = distance(tensor.sketch, *t.b);
      if (!(apart_by <= 4 * t.bound) || !(apart_by <= t.distance / 4)) continue;
      found = true;
      worst = std::max(worst, apart_by);
      said += (said.empty() ? "" : ", ") + t.parameter + " has that of " + name.substr(place.size() + 1);
    }
    if (!found) return false;
  }
  finding.relation = "another parameter's: " + said;
  finding.residual = worst;
  return true;
}

/// Each update along its own gradient and parameter, with one rate: SGD whose gradients are decayed, by group.
Fit decayed_by_gradient(const std::vector<Update>& updates, const Side& b) {
  Fit common{{0}, 1};
  for (const Update& u : updates) {
    const Tensor* const gradient = b.step.tensors.find("grad/" + u.parameter);
    if (!gradient || gradient->squares == 0) return {{0}, 1};  // SGD needs a gradient
    const Fit one = fit({gradient->sketch, u.before_b}, u.b);
    const bool first = &u == &updates.front();
    if (!(one.residual < 1e-2) ||
        (!first && std::fabs(one.weights[0] - common.weights[0]) > 1e-2 * std::fabs(common.weights[0])))
      return {{0}, 1};
    if (first) common = {{one.weights[0]}, 0};
    common.residual = std::max(common.residual, one.residual);
  }
  return common;
}

/// Whether the state of PyTorch's random generator moves from this step to the next.
bool draws(const Side& side, std::int64_t step) {
  const auto next = side.run.steps.upper_bound(step);
  if (next == side.run.steps.end() || side.step.ranks.empty() || next->second.ranks.empty()) return false;
  const auto state = [](const Step& step) {
    const auto& generators = step.ranks.begin()->second.generators;
    const auto found = generators.find(generators.contains("cuda") ? "cuda" : "torch");
    return found == generators.end() ? std::string() : found->second;
  };
  return !state(side.step).empty() && state(side.step) != state(next->second);
}

}  // namespace

bool rounded_everywhere(const std::vector<Apart>& apart, const std::vector<const Tensor*>& a,
                        const std::vector<const Tensor*>& b, std::size_t total) {
  bool elements = true, sums = 10 * apart.size() >= 9 * total;
  double squares = 0;
  for (std::size_t i = 0; i < apart.size(); ++i) {
    const int judged = a[i] && b[i] ? rounded_elements(a[i]->elements, b[i]->elements) : 0;
    if (judged < 0) return false;
    elements &= judged > 0;
    // The sums of a small tensor say its norm to a third.
    if (judged == 0) sums &= apart[i].distance > 0.0004 && apart[i].distance < 0.007;
    squares += apart[i].distance * apart[i].distance;
  }
  return elements || (sums && like_rounding(std::sqrt(squares / static_cast<double>(apart.size())), "BF16"));
}

Finding made(std::int64_t step, const std::string& place, const std::vector<Apart>& apart, std::size_t total) {
  Finding finding;
  finding.step = step;
  finding.place = place;
  finding.parameter = apart.front().parameter;
  finding.distance = apart.front().distance;
  finding.bound = apart.front().bound;
  finding.total = total;
  for (const Apart& t : apart) finding.tensors.push_back(t.parameter);
  return finding;
}

Finding said(std::int64_t step, const std::string& place, const std::string& parameter, const std::string& relation) {
  Finding finding;
  finding.step = step;
  finding.place = place;
  finding.parameter = parameter;
  finding.relation = relation;
  finding.distance = 1;
  finding.total = 1;
  return finding;
}

void explain_gradients(const std::string& place, const std::vector<Apart>& apart, const Side& a, const Side& b,
                       Finding& finding) {
  const bool none = std::all_of(apart.begin(), apart.end(), [](const Apart& t) { return norm(*t.b) == 0; });
  if (none) {
    finding.relation = "all zero";
    return;
  }
  if (std::any_of(apart.begin(), apart.end(), [](const Apart& t) { return !std::isfinite(norm(*t.b)); })) {
    finding.relation = "not finite";
    return;
  }
  const auto causes = [&](const std::vector<std::string>& names, double factor) {
    return causes_of(names, factor, place, a, b);
  };
  if (one_factor(apart, finding, causes) || begun_again(place, apart, b, finding) || factors_by_range(apart, finding))
    return;
  if (place == "grad" || place == "local" || place == "direction") {
    if (other_micro_batches(apart, a, b, finding)) {
      if (place == "direction") finding.relation = "the direction is a plain sum of gradients: " + finding.relation;
      return;
    }
  }
  if (stale(place, apart, a, b, finding) || other_parameter(place, apart, a, finding)) return;
  std::vector<const Sketch*> of_a, of_b;
  for (const Apart& t : apart) of_a.push_back(t.a), of_b.push_back(t.b);
  const Fit along = fit({concatenated(of_a)}, concatenated(of_b));
  finding.relation = "no simple relation (x " + to_rounded_text(along.weights[0], 3) + " along A's)";
  finding.residual = along.residual;
  std::vector<const Tensor*> mine, theirs;
  for (const Apart& t : apart)
    mine.push_back(a.step.tensors.find(place + "/" + t.parameter)),
        theirs.push_back(b.step.tensors.find(place + "/" + t.parameter));
  if (rounded_everywhere(apart, mine, theirs, finding.total) && std::fabs(along.weights[0] - 1) < 0x1p-9)
    finding.relation += ", as far apart as rounding to bfloat16 leaves";
  else if (apart.size() == finding.total || draws(a, finding.step) != draws(b, finding.step))
    finding.relation += drawing(a, b, finding.step);
}

std::string drawing(const Side& a, const Side& b, std::int64_t step) {
  const bool left = draws(a, step), right = draws(b, step);
  if (left && right)
    return "; each step draws random numbers, as active dropout does: other micro-batches get other masks";
  if (!left && !right) return "";
  return std::string("; only ") + (left ? "A" : "B") + " draws random numbers in each step, as active dropout does";
}

void explain_outputs(const Tensors& outputs, const std::string& module, const std::vector<Apart>& apart, const Side& a,
                     const Side& b, Finding& finding) {
  explain_gradients("output", apart, a, b, finding);
  if (!finding.relation.starts_with("no simple")) return;
  const bool others = std::all_of(apart.begin(), apart.end(), [&](const Apart& t) {
    return std::any_of(outputs.all().begin(), outputs.all().end(), [&](const auto& known) {
      return known.first.starts_with(module + "/") && known.second.sketch.size() == t.b->size() &&
             distance(known.second.sketch, *t.b) <= t.bound;
    });
  });
  if (others) finding.relation = "each is that of another sample", finding.residual = apart.front().bound;
}

void explain_updates(const std::vector<Update>& updates, const Side& a, const Side& b, Finding& finding) {
  std::vector<Apart> apart;
  for (const Update& u : updates) apart.push_back({u.parameter, &u.a, &u.b, u.distance, std::max(u.bound, 1e-3)});
  const auto every = [&](auto holds) { return std::all_of(updates.begin(), updates.end(), holds); };
  if (every([](const Update& u) { return norm(u.b) <= 1e-12 * norm(u.before_b); })) {
    finding.relation = "never updated: the parameters stand still";
    return;
  }
  if (every([](const Update& u) { return norm(u.b) <= 1e-3 * norm(u.a); }) && one_factor(apart, finding)) {
    finding.relation += ": the parameters stand still";
    return;
  }
  if (one_factor(apart, finding)) return;  // no micro-batch or rank is in an update: its gradient was the same
  // Updates along the gradient: of the optimizer's input, or of the sum of micro-batches.
  const double rate = b.step.rates().empty() ? 0 : b.step.rates()[0];
  Sketch gradients, target, theirs;
  bool known = true;
  for (const Update& u : updates) {
    const Tensor* const found = b.step.tensors.find("grad/" + u.parameter);
    if (!found || found->sketch.size() != u.b.size()) {
      known = false;
      break;
    }
    gradients.insert(gradients.end(), found->sketch.begin(), found->sketch.end());
    theirs.insert(theirs.end(), u.a.begin(), u.a.end());
    target.insert(target.end(), u.b.begin(), u.b.end());
  }
  if (known) {
    Fit sgd = fit({gradients}, target);
    if (!(sgd.residual < 1e-2)) sgd = decayed_by_gradient(updates, b);
    const bool moves = norm(gradients) > 0 && fit({gradients}, theirs).residual > 1e-2;  // A is not plain SGD, too
    if (sgd.residual < 1e-2 && moves) {
      finding.relation =
          "the update is " + to_rounded_text(sgd.weights[0], 4) + " x gradient" +
          (rate > 0 && std::fabs(sgd.weights[0] + rate) <= 1e-2 * rate ? ": plain SGD with the rate" : ": plain SGD");
      finding.residual = sgd.residual;
      return;
    }
  }
  Sketch before;
  theirs.clear(), target.clear();
  for (const Update& u : updates) {
    theirs.insert(theirs.end(), u.a.begin(), u.a.end());
    target.insert(target.end(), u.b.begin(), u.b.end());
    before.insert(before.end(), u.before_b.begin(), u.before_b.end());
  }
  if (const Fit alone = fit({before}, target); alone.residual < 1e-2 && fit({theirs}, target).residual > 0.1) {
    finding.relation = "the update is " + to_rounded_text(alone.weights[0], 3) + " x parameter: weight decay alone";
    finding.residual = alone.residual;
    return;
  }
  const Fit decayed = fit({theirs, before}, target);
  const double without = residual({theirs}, {1}, target);
  if (decayed.residual < 2e-2 && decayed.residual < without / 4 && std::fabs(decayed.weights[0] - 1) < 2e-2) {
    finding.relation =
        "the update plus " + to_rounded_text(decayed.weights[1], 3) + " x parameter: another weight decay";
    finding.residual = decayed.residual;
    return;
  }
  const Fit along = fit({theirs}, target);
  finding.relation = "no simple relation (x " + to_rounded_text(along.weights[0], 3) + " along A's)";
  finding.residual = along.residual;
  std::vector<const Tensor*> mine, made;
  std::vector<Sketch> moved;  // what B has in addition to A, relative to the parameter
  for (const Update& u : updates) {
    mine.push_back(a.step.tensors.find("param/" + u.parameter)),
        made.push_back(b.step.tensors.find("param/" + u.parameter));
    Sketch by = u.a;
    for (std::size_t i = 0; i < by.size(); ++i) by[i] -= u.b[i];
    const double size = norm(u.before_b);
    apart[moved.size()].distance = size > 0 ? norm(by) / size : 2;
    moved.push_back(by);
  }
  if (rounded_everywhere(apart, mine, made, finding.total))
    finding.relation += ", as far apart as rounding the parameters to bfloat16 leaves";
}

}  // namespace zs::probe
