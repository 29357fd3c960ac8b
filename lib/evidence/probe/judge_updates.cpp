// SPDX-License-Identifier: Apache-2.0
// Checks of the optimizer: its state by sketches, which are linear, and by elements; its update by elements.
#include <algorithm>
#include <cmath>

#include "base/number.hpp"
#include "base/words.hpp"
#include "probe/bounds.hpp"
#include "probe/judges.hpp"
#include "probe/options.hpp"

namespace zs::probe {
namespace {

/// The inputs and results of an optimizer's rule for a parameter in a step. Null if it is not recorded.
struct Subject {
  std::string parameter;
  const Group* group;
  Rule rule;
  Slots slots;
  const Tensor *gradient, *before, *after, *first_before, *first, *second_before, *second,
      *largest;  ///< of amsgrad
  double count;  ///< the optimizer's counter after the update; 0: it has none
};

std::vector<Subject> subjects(const Moment& now, const Run& run, std::set<std::string>& unknown) {
  std::vector<Subject> found;
  const auto counts = counters(now.step);
  for (const auto& [parameter, group] : groups_of(now.step)) {
    const Tensor* const after = now.step.tensors.find("param/" + parameter);
    if (!after || run.replicas.contains({now.number, "param/" + parameter})) continue;
    const auto rule = rule_of(*group);
    if (!rule) {
      unknown.insert(rule_name(*group));
      continue;
    }
    const auto tensor = [&](const Tensors* tensors, const std::string& place) {
      return tensors && !place.starts_with("state./") ? tensors->find(place) : nullptr;
    };
    const Slots slots = slots_of(*rule, now.step, parameter);
    const std::string first = "state." + slots.first + "/" + parameter,
                      second = "state." + slots.second + "/" + parameter;
    const Tensor* before = tensor(&now.step.tensors, "begin/" + parameter);  // what changed since the last update
    if (!before) before = tensor(now.from, "param/" + parameter);
    const auto count = counts.find(parameter);
    found.push_back({parameter, group, *rule, slots, tensor(&now.step.tensors, "grad/" + parameter), before, after,
                     tensor(now.from, first), tensor(&now.step.tensors, first), tensor(now.from, second),
                     tensor(&now.step.tensors, second), tensor(&now.step.tensors, "state.max_exp_avg_sq/" + parameter),
                     count == counts.end() ? 0 : parse_real(count->second).value_or(0)});
  }
  return found;
}

/// The gradient as the rule takes it.
double taken(const Rule& rule, double gradient, double parameter) {
  return (rule.maximize ? -gradient : gradient) + (rule.decoupled ? 0 : rule.decay * parameter);
}

/// All elements of a parameter's step; those that a side has not are left out.
struct Sampled {
  std::vector<double> before, after, gradient, first_before, first, second_before, second, largest;
};

std::optional<Sampled> elements_of(const Subject& s) {
  Sampled made;
  if (!s.before || !s.gradient || s.after->elements.empty() || s.before->elements.size() != s.after->elements.size() ||
      s.gradient->elements.size() != s.after->elements.size())
    return std::nullopt;
  const auto at = [](const Tensor* tensor, std::size_t i) {
    return !tensor ? 0 : i < tensor->elements.size() ? tensor->elements[i] : kNan;
  };
  for (std::size_t i = 0; i < s.after->elements.size(); ++i) {
    const double numbers[] = {s.before->elements[i], s.after->elements[i], s.gradient->elements[i],
                              at(s.first_before, i), at(s.first, i),       at(s.second_before, i),
                              at(s.second, i),       at(s.largest, i)};
    if (std::ranges::any_of(numbers, [](double x) { return !std::isfinite(x); })) continue;
    made.before.push_back(numbers[0]), made.after.push_back(numbers[1]), made.gradient.push_back(numbers[2]);
    made.first_before.push_back(numbers[3]), made.first.push_back(numbers[4]);
    made.second_before.push_back(numbers[5]), made.second.push_back(numbers[6]);
    made.largest.push_back(numbers[7]);
  }
  return made.before.empty() ? std::nullopt : std::optional(made);
}

/// The update of an element before decoupled decay: what the rate multiplies.
double direction(const Subject& s, const Sampled& e, std::size_t i, double count) {
  const Rule& rule = s.rule;
  const double gradient = taken(rule, e.gradient[i], e.before[i]);
  if (rule.kind == Kind::lion) {
    const double sum = rule.beta1 * e.first_before[i] + (1 - rule.beta1) * gradient;
    return sum > 0 ? 1 : sum < 0 ? -1 : 0;
  }
  if (rule.kind == Kind::sgd) {
    if (rule.momentum == 0) return gradient;
    return rule.nesterov ? gradient + rule.momentum * e.first[i] : e.first[i];
  }
  const double unbiased =
      std::sqrt(s.largest ? e.largest[i] : e.second[i]) / std::sqrt(1 - std::pow(rule.beta2, count)) + rule.eps;
  return e.first[i] / (1 - std::pow(rule.beta1, count)) / unbiased;
}

/// Replaces moments by the unrounded result of the rule. False if moments have the type of the parameter. If their type
/// is coarser, some rules compute with the unrounded result, and round it to store it.
bool unround(const Subject& s, Sampled& e) {
  if (s.rule.kind != Kind::adam || s.largest ||
      half_unit(coarser(s.first->dtype, s.second->dtype)) <= half_unit(s.after->dtype))
    return false;
  for (std::size_t i = 0; i < e.before.size(); ++i) {
    const double gradient = taken(s.rule, e.gradient[i], e.before[i]);
    e.first[i] = s.rule.beta1 * e.first_before[i] + (1 - s.rule.beta1) * gradient;
    e.second[i] = s.rule.beta2 * e.second_before[i] + (1 - s.rule.beta2) * gradient * gradient;
  }
  return true;
}

/// The largest error of elements over its bound, and whether all hold. `made`: the expected element, before rounding.
template <class Made>
double worst(const Sampled& e, double unit, const Made& made) {
  double most = 0;
  for (std::size_t i = 0; i < e.before.size(); ++i) {
    const double expected = made(i), moved = std::fabs(expected - e.before[i]);
    const double bound = 4 * unit * (std::fabs(e.before[i]) + std::fabs(expected)) + 2e-5 * moved + 1e-30;
    most = std::max(most, std::fabs(e.after[i] - expected) / bound);
  }
  return most;
}

/// The end of a sentence if the elements are the expected ones, rounded to bfloat16.
std::string as_rounded(const std::vector<double>& expected, const std::vector<double>& found) {
  return rounded_elements(expected, found) > 0 ? ", as far apart as rounding to bfloat16 leaves" : "";
}

/// x = factor * y by least squares, with the relative residual.
Fit along(const std::vector<double>& y, const std::vector<double>& x) { return fit({y}, x); }

/// The relation of the found update to the expected one.
std::string cause(const Subject& s, const Sampled& e, double unit,
                  const std::function<double(std::size_t, double)>& made) {
  const std::size_t n = e.before.size();
  const Rule& rule = s.rule;
  if (e.before == e.after) return "stands still";
  if (rule.kind == Kind::adam) {
    for (std::int64_t other = 1; other <= static_cast<std::int64_t>(s.count) + 64; ++other) {
      if (static_cast<double>(other) == s.count) continue;
      if (worst(e, unit, [&](std::size_t i) { return made(i, static_cast<double>(other)); }) <= 1) {
        const double factor = direction(s, e, 0, static_cast<double>(other)) / direction(s, e, 0, s.count);
        return "has the bias correction of step " + to_text(other) + ", and its counter says " + to_text(s.count) +
               ": x " + to_rounded_text(factor, 5);
      }
    }
  }
  std::vector<double> expected(n), real(n), decayed(n), rest(n);
  const double keeps = rule.decoupled ? 1 - rule.rate * rule.decay : 1;
  for (std::size_t i = 0; i < n; ++i) {
    const double moved = made(i, s.count) - keeps * e.before[i];
    expected[i] = moved, real[i] = e.after[i] - keeps * e.before[i], decayed[i] = e.before[i];
    rest[i] = e.after[i] - e.before[i] - moved;
  }
  std::vector<double> moved(n), whole(n), change(n);
  for (std::size_t i = 0; i < n; ++i)
    moved[i] = e.after[i] - e.before[i], whole[i] = made(i, s.count), change[i] = whole[i] - e.before[i];
  const double fine = 1e-3;
  // With its decay and without it: both are times the rate.
  for (const auto& [wanted, found] : {std::pair{&change, &moved}, {&expected, &real}}) {
    const Fit f = along(*wanted, *found);
    if (f.residual <= fine && std::fabs(f.weights[0] - 1) > 1e-5)
      return factor_text(f.weights[0], {}, 1e-4) + " of the update that gradient, state and rate " +
             to_text(rule.rate) + " make" +
             (f.weights[0] > 0 ? ": as with a rate of " + to_rounded_text(rule.rate * f.weights[0], 5) : "");
  }
  if (const Fit f = along(whole, e.after); f.residual <= 1e-5 && n > 2)
    return factor_text(f.weights[0], {}, 1e-4) + " of the updated parameter: it was changed behind the update";
  if (const Fit f = along(decayed, rest); f.residual <= 10 * fine && n > 2) {
    const double wanted = rule.decoupled ? rule.rate * rule.decay : 0;
    return "is decayed by " + to_rounded_text(wanted - f.weights[0], 3) + " x itself, expected " +
           to_rounded_text(wanted, 3);
  }
  if (const Fit f = along(e.gradient, moved); f.residual <= fine && n > 2 && rule.kind != Kind::sgd)
    return "moves by " + to_rounded_text(f.weights[0], 4) + " x gradient: plain SGD, expected " + s.group->optimizer;
  std::size_t wrong = 0, still = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double bound =
        4 * unit * (std::fabs(e.before[i]) + std::fabs(whole[i])) + 2e-5 * std::fabs(whole[i] - e.before[i]) + 1e-30;
    if (std::fabs(e.after[i] - whole[i]) <= bound) continue;
    ++wrong;
    still += e.after[i] == e.before[i];
  }
  const std::string text =
      to_text(static_cast<std::int64_t>(wrong)) + " of " + to_text(static_cast<std::int64_t>(n)) + " elements";
  if (still == wrong) return text + " stand still";
  return text + " move otherwise than gradient, state, counter and rate say (x " +
         to_rounded_text(along(expected, real).weights[0], 3) + " along it)";
}

/// Muon moves a matrix by its rate along a direction whose singular values are near 1. Some record the direction,
/// others the gradient that it is made of.
void judge_direction(const Subject& s, const Moment& now, Tally& tally) {
  if (s.after->shape.size() != 2 || s.before->sketch.size() != s.after->sketch.size()) return;
  const Rule& rule = s.rule;
  const double rows = static_cast<double>(s.after->shape[0]), columns = static_cast<double>(s.after->shape[1]);
  const double longest = 1.5 * std::sqrt(std::min(rows, columns)) *
                         std::max({1.0, std::sqrt(rows / columns), 0.2 * std::sqrt(std::max(rows, columns))});
  Sketch moved = s.after->sketch;
  for (std::size_t i = 0; i < moved.size(); ++i) moved[i] -= (1 - rule.rate * rule.decay) * s.before->sketch[i];
  const Tensor* const direction = now.step.tensors.find("direction/" + s.parameter);
  const double size = direction ? std::sqrt(direction->squares) : norm(moved) / std::sqrt(8.0) / rule.rate;
  const Fit along = fit({direction ? direction->sketch : s.gradient ? s.gradient->sketch : s.before->sketch}, moved);
  const std::string place = "param/" + s.parameter, times = to_rounded_text(along.weights[0], 4) + " x ";
  if (size > longest)
    tally.breach({now.number, (direction ? "direction/" : "param/") + s.parameter,
                  (direction ? "is longer" : "moves by more") + std::string(" than an orthogonal direction") +
                      (direction ? ": x " + to_rounded_text(1.5 * size / longest, 3) + " of it" : " times the rate"),
                  size / longest - 1, 0});
  else if (direction && !(along.residual <= 1e-2 && close_to(along.weights[0], -rule.rate, 1e-3)))
    tally.breach({now.number, place, "moves by " + times + "its direction, expected " + to_text(-rule.rate),
                  along.residual, 1e-2});
  else if (!direction && s.gradient && along.residual <= 1e-3)
    tally.breach(
        {now.number, place,
         "moves by " + times + "gradient: plain SGD, expected the orthogonal direction of " + s.group->optimizer, 1,
         1e-3});
  else
    tally.holds();
}

/// Muon's momentum if its direction is recorded instead of the gradient: the share from the step before.
void judge_momentum(const Subject& s, const Moment& now, Tally& tally) {
  if (s.first->same(*s.first_before)) return;  // of an older zs_probe: its start has the first gradient in it
  Sketch sum(s.first->sketch.size(), 0);
  for (const auto& [key, local] : now.step.locals) {
    const Tensor* const one = local.tensors.find(s.parameter);
    for (std::size_t i = 0; one && one->sketch.size() == sum.size() && i < sum.size(); ++i) sum[i] += one->sketch[i];
  }
  const Fit made = fit({sum, s.first_before->sketch}, s.first->sketch);
  const double most = sum_rounding(s.first->dtype, 8);
  if (made.weights.size() < 2 || !(made.residual <= most)) return;
  const double apart = std::fabs(made.weights[1] - s.rule.momentum);
  if (apart <= most)
    tally.holds();
  else
    tally.breach({now.number, "state." + s.slots.first + "/" + s.parameter,
                  "keeps " + to_rounded_text(made.weights[1], 4) + " of the state before, expected " +
                      to_rounded_text(s.rule.momentum, 4),
                  apart, most});
}

}  // namespace

void judge_moments(const Run& run, Tally& tally, const Moment& now) {
  if (!now.from) return tally.note("a step whose step before is not recorded is not checked");
  std::set<std::string> unknown;
  for (const Subject& s : subjects(now, run, unknown)) {
    const Rule& rule = s.rule;
    if (rule.kind == Kind::muon && !s.gradient && s.first && s.first_before) judge_momentum(s, now, tally);
    if (!s.first || !s.gradient || (!s.first_before && !s.before)) continue;
    const bool begun = s.first_before != nullptr;
    double keeps = rule.kind == Kind::lion ? rule.beta2 : rule.kind == Kind::adam ? rule.beta1 : rule.momentum;
    double takes = rule.kind == Kind::sgd ? 1 - rule.dampening : 1 - keeps;
    if (rule.kind == Kind::sgd && !begun) takes = 1;
    if (!begun) keeps = rule.kind == Kind::sgd ? 0 : keeps;
    if (!rule.decoupled && rule.decay != 0 && !s.before) continue;
    Sketch expected(s.first->sketch.size(), 0);
    if (s.gradient->sketch.size() != expected.size() || (begun && s.first_before->sketch.size() != expected.size()))
      continue;
    double parts = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double old = begun ? keeps * s.first_before->sketch[i] : 0;
      const double made = takes * taken(rule, s.gradient->sketch[i], rule.decoupled ? 0 : s.before->sketch[i]);
      expected[i] = old + made;
      parts += old * old + made * made;
    }
    const double size = std::max(norm(expected), norm(s.first->sketch));
    const double most =
        size > 0 ? sum_rounding(coarser(s.first->dtype, s.gradient->dtype), 8) * std::max(1.0, std::sqrt(parts) / size)
                 : 1;
    const double apart = distance(expected, s.first->sketch);
    const std::string place = "state." + s.slots.first + "/" + s.parameter;
    if (!(apart <= most)) {
      std::vector<Sketch> columns{s.gradient->sketch};
      if (begun) columns.push_back(s.first_before->sketch);
      const Fit real = fit(columns, s.first->sketch);
      std::vector<double> made;
      const auto e = elements_of(s);
      for (std::size_t i = 0; e && i < e->first.size(); ++i)
        made.push_back((begun ? keeps * e->first_before[i] : 0) + takes * taken(rule, e->gradient[i], e->before[i]));
      std::string text =
          "does not follow from the state before and the gradient" + (e ? as_rounded(made, e->first) : "");
      if (real.residual <= 4 * most)
        text = "is " + to_rounded_text(real.weights[0], 4) + " x gradient" +
               (begun ? " + " + to_rounded_text(real.weights[1], 4) + " x the state before" : "") + ", expected " +
               to_rounded_text(takes, 4) + (begun ? " and " + to_rounded_text(keeps, 4) : "");
      tally.breach({now.number, place, text, apart, most});
      continue;
    }
    tally.holds();
    if (rule.kind != Kind::adam || !s.second) continue;
    const auto e = elements_of(s);
    if (!e) continue;
    std::vector<double> squares, real, whole;
    double over = 0;
    for (std::size_t i = 0; i < e->before.size(); ++i) {
      const double g = taken(rule, e->gradient[i], e->before[i]);
      const double made = rule.beta2 * e->second_before[i] + (1 - rule.beta2) * g * g;
      // Some kernels take 1 - beta in float32.
      const double bound =
          16 * half_unit(s.second->dtype) * made + half_unit("F32") * (e->second_before[i] + g * g) + 1e-37;
      over = std::max(over, std::fabs(e->second[i] - made) / bound);
      squares.push_back(g * g), real.push_back(e->second[i] - rule.beta2 * e->second_before[i]), whole.push_back(made);
    }
    if (over <= 1) {
      tally.holds();
      continue;
    }
    const Fit f = fit({squares}, real);
    tally.breach({now.number, "state." + s.slots.second + "/" + s.parameter,
                  f.residual < 1e-3
                      ? "takes " + to_rounded_text(f.weights[0], 4) + " x the squared gradient, expected " +
                            to_rounded_text(1 - rule.beta2, 4)
                      : "does not follow from the state before and the squared gradient" + as_rounded(whole, e->second),
                  over, 1});
  }
}

void judge_updates(const Run& run, Tally& tally, const Moment& now) {
  if (!now.from) return tally.note("a step whose step before is not recorded is not checked");
  std::set<std::string> unknown;
  bool named = false;
  for (const Group& group : now.step.groups) named |= !group.params.empty();
  if (!named)
    return tally.lacks("the recording does not say which parameters a group holds: record it with this zs_probe");
  std::size_t without = 0;
  std::vector<std::string> sliced;
  for (const Subject& s : subjects(now, run, unknown)) {
    if (!s.before) continue;
    const Rule& rule = s.rule;
    const double unit = half_unit(s.after->dtype);
    if (rule.kind == Kind::muon) {
      judge_direction(s, now, tally);
      continue;
    }
    if (!s.gradient) continue;
    auto e = elements_of(s);
    if (!e) {
      if (rule.kind == Kind::sgd && (rule.momentum == 0 || s.first)) {  // linear: by sketches
        Sketch expected = s.before->sketch;
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const double g = taken(rule, s.gradient->sketch[i], s.before->sketch[i]);
          expected[i] -= rule.rate * (rule.momentum == 0 ? g
                                      : rule.nesterov    ? g + rule.momentum * s.first->sketch[i]
                                                         : s.first->sketch[i]);
        }
        const double apart = distance(expected, s.after->sketch), most = 8 * unit;
        if (apart <= most)
          tally.holds();
        else
          tally.breach(
              {now.number, "param/" + s.parameter, "moves otherwise than gradient, state and rate say", apart, most});
      } else if (std::ranges::all_of(s.after->pieces, &Tensor::Piece::contiguous)) {
        ++without;
      } else {
        sliced.push_back(s.parameter);
      }
      continue;
    }
    const bool moments = rule.kind != Kind::sgd || rule.momentum != 0;
    if ((moments && !s.first) || (rule.kind == Kind::adam && (!s.second || s.count == 0))) {
      ++without;
      continue;
    }
    const auto made = [&](std::size_t i, double count) {
      return (rule.decoupled ? 1 - rule.rate * rule.decay : 1) * e->before[i] - rule.rate * direction(s, *e, i, count);
    };
    const auto expected = [&](std::size_t i) { return made(i, s.count); };
    double over = worst(*e, unit, expected);
    if (over > 1 && unround(s, *e)) over = worst(*e, unit, expected);
    if (over <= 1)
      tally.holds();
    else
      tally.breach({now.number, "param/" + s.parameter, cause(s, *e, unit, made), over, 1});
  }
  for (const std::string& name : unknown) tally.lacks("the rule of " + name + " is not known");
  if (!sliced.empty())
    tally.lacks("ranks hold slices of parts of " + some_of(sliced, 1) +
                ", of which no single elements are recorded: their updates are checked beside another recording alone");
  if (without > 0) tally.lacks("some parameters have no elements, counter or state: record them with this zs_probe");
}

}  // namespace zs::probe
