// SPDX-License-Identifier: Apache-2.0
// Checks of gradients: replicas, and sums of micro-batches.
#include <algorithm>
#include <cmath>

#include "base/number.hpp"
#include "base/words.hpp"
#include "probe/bounds.hpp"
#include "probe/causes.hpp"
#include "probe/judges.hpp"

namespace zs::probe {
namespace {

/// A parameter's contributions, their sum and the number of data-parallel ranks that have one.
struct Contributed {
  Sketch sum;
  std::vector<Sketch> columns;
  std::vector<std::pair<int, int>> keys;
  std::vector<const Tensor*> terms;
  std::set<int> ranks;
  std::string dtype;
};

/// The contributions of all ranks, or of the data-parallel rank `by`, from a micro-batch on.
Contributed contributed(const Step& step, const std::string& parameter, std::size_t size, int by = -1,
                        std::int64_t from = 0) {
  Contributed found;
  found.sum.assign(size, 0);
  for (const auto& [key, local] : step.locals) {
    const Tensor* const one = by < 0 || key.first == by ? local.tensors.find(parameter) : nullptr;
    if (!one || one->sketch.size() != size || key.second < from) continue;
    for (std::size_t i = 0; i < size; ++i) found.sum[i] += one->sketch[i];
    found.columns.push_back(one->sketch);
    found.keys.push_back(key);
    found.terms.push_back(one);
    found.ranks.insert(key.first);
    found.dtype = coarser(found.dtype, one->dtype);
  }
  return found;
}

/// Whether the gradients of a step's first micro-batches are finite.
bool are_finite(const Step& step, std::int64_t micros) {
  return std::ranges::all_of(step.locals, [&](const auto& one) {
    return one.first.second >= micros || std::ranges::all_of(one.second.tensors.all(), [](const auto& tensor) {
             return std::isfinite(tensor.second.squares);
           });
  });
}

/// The number of micro-batches, from the first of the step on, that may have been dropped on purpose: zero_grad cleared
/// their gradients before an optimizer took them. 0 if the step has as many micro-batches as one that drops none: some
/// are lost then.
std::int64_t dropped_of(const Run& run, const Step& step) {
  const auto micros = [](const Step& of) {
    int most = 0;
    for (const auto& [key, local] : of.locals) most = std::max(most, key.second + 1);
    return most;
  };
  const auto dropped = static_cast<std::int64_t>(value_of(step.scalars, "dropped", 0));
  if (dropped == 0 || step.scalars.contains("accumulation")) return 0;
  const bool lost = std::ranges::any_of(run.steps, [&](const auto& other) {
    return !other.second.scalars.contains("dropped") && micros(other.second) == micros(step);
  });
  return lost && are_finite(step, dropped) ? 0 : dropped;
}

/// Says why micro-batches were dropped, if it can be known.
void tell_dropped(const Step& step, std::int64_t dropped, Tally& tally) {
  const bool again = std::ranges::all_of(step.ranks, [&](const auto& rank) {
    const auto& batch = rank.second.batch;
    return static_cast<std::int64_t>(batch.size()) > dropped &&
           std::all_of(batch.begin(), batch.begin() + dropped, [&](const auto& samples) {
             return !samples.empty() && std::find(batch.begin() + dropped, batch.end(), samples) != batch.end();
           });
  });
  const std::string what = "gradients of micro-batches were set to zero before the update";
  if (!are_finite(step, dropped))
    tally.note(what + ", since they were not finite");
  else if (again)
    tally.note(what + ", and later micro-batches have the same samples, as with SAM");
  else
    tally.lacks(what + ": right for another loss or a step that is left out, wrong where they belong to the step");
}

/// Whether a gradient is nearer to a sum than to another one. A gradient of one element lies along both: then its size
/// decides.
bool is_nearer(const Sketch& gradient, const Sketch& one, const Sketch& other, double factor) {
  const double a = fit({one}, gradient).residual, b = fit({other}, gradient).residual;
  return std::max(a, b) > 1e-3 ? a < b : residual({one}, {factor}, gradient) < residual({other}, {factor}, gradient);
}

/// How many ranks hold one share's gradient of a micro-batch: as parts, copies or summands.
std::size_t holders_of(const Run& run, const Step& step, const std::string& parameter) {
  std::map<std::pair<int, int>, std::size_t> held;  // of a share and a micro-batch
  std::size_t most = 1;
  for (const auto& [key, local] : step.locals) {
    const Tensor* const one = local.tensors.find(parameter);
    if (!one) continue;
    std::size_t& ranks = held[{key.first % run.ranks, key.second}];
    ranks += one->copies + one->pieces.size();
    most = std::max(most, ranks);
  }
  return most;
}

/// The number of ranks by which a sum of gradients is divided. Tied stages and tensor ranks have summands of one share,
/// and experts have the tokens of all shares. A gradient that all ranks hold is divided by all shares, also where some
/// did not use the parameter. Parameters inside and outside of a plan of tensor parallelism have shares of other sizes.
double shares_of(const Run& run, const Step& step, const std::string& parameter, const Tensor& gradient,
                 const std::set<int>& summands) {
  const bool divided = size_of(run, "pipeline") > 1 || size_of(run, "tensor") > 1 || size_of(run, "expert") > 1;
  if (divided && run.axes.contains("data")) return static_cast<double>(size_of(run, "data") * size_of(run, "context"));
  std::set<int> shares;  // zs_probe counts a summand's rank behind all ranks
  for (const int by : summands) shares.insert(by % run.ranks);
  for (const auto& [key, local] : step.locals) {
    if (size_of(run, "ep") > 1) shares.insert(key.first % run.ranks);
  }
  const std::size_t ranks = step.ranks.size();
  const bool everywhere = gradient.copies + gradient.pieces.size() >= ranks && !gradient.summands;
  const std::size_t all = everywhere ? ranks / holders_of(run, step, parameter) : 0;
  return static_cast<double>(std::max(shares.size(), all));
}

/// Explains a factor with which a framework multiplies gradients by design; "" if there is none. With the sequence
/// parallelism of an mpu, DeepSpeed sums over the ranks of a sequence.
std::string by_contract(const Run& run, const Step& step, double factor) {
  const std::int64_t sequence = size_of(run, "sequence");
  if (run.framework.starts_with("DeepSpeed") && sequence > 1 && close_to(factor, static_cast<double>(sequence), 1e-3))
    return "by contract: DeepSpeed sums gradients over sequence ranks (x " + to_text(sequence) + ")";
  const double micros = value_of(step.scalars, "accumulation", 1);
  if (value_of(step.scalars, "divided", 0) == 1 && micros > 1 && close_to(factor, micros, 1e-3))
    return "by contract: this pipeline sums the gradients of its micro-batches (scale_grads=False, x " +
           to_text(micros) + ")";
  return "";
}

/// The number by which the stages of torch's pipelines divide the gradients of micro-batches after backward.
double micros_of(const Step& step) {
  const double divided = value_of(step.scalars, "divided", 0);
  return divided == 0 ? 1 : std::max(divided, value_of(step.scalars, "accumulation", 1));
}

/// "micro-batch 2 of rank 1 counts 0 times", each weight relative to the expected one; "" if no sum of them fits.
std::string by_weights(const Contributed& in, const Sketch& gradient, double unit, double most, double& residual_left) {
  if (in.columns.size() < 2 || in.columns.size() * 2 > gradient.size()) return "";
  const Fit real = fit(in.columns, gradient);
  if (!(real.residual <= most) || !(real.residual <= residual_left / 3)) return "";
  residual_left = real.residual;
  std::string text;
  std::size_t shown = 0;
  std::vector<double> weights;
  for (std::size_t i = 0; i < in.keys.size(); ++i) {
    const double exact = real.weights[i] / unit;
    const double times = std::fabs(exact - 1) <= std::max(0.02, 8 * most) ? 1
                         : std::fabs(exact) < 0.02                        ? 0
                                                                          : std::round(exact * 1000) / 1000;
    weights.push_back(times);
    if (times == 1 || ++shown > 4) continue;
    text += (text.empty() ? "" : ", ") + micro_text(in.keys[i], *in.terms[i], in.ranks.size()) +
            (times == 0 ? " is missing" : " counts " + to_rounded_text(times, 3) + " times");
  }
  if (const std::string alike = alike_text(weights, in.keys); !alike.empty()) return alike;
  if (shown > 4) text += ", and " + to_text(static_cast<std::int64_t>(shown - 4)) + " more";
  return text;
}

/// "has the gradient of w.2 added", or "is that of w.2", if another parameter explains the gradient; else "".
std::string with_another(const Step& step, const std::string& parameter, const Contributed& in, const Sketch& gradient,
                         double most) {
  std::string text;
  double best = most;
  for (const auto& [name, tensor] : step.tensors.all()) {
    if (!name.starts_with("grad/") || parameter_of(name) == parameter || tensor.sketch.size() != gradient.size())
      continue;
    const Contributed other = contributed(step, parameter_of(name), gradient.size());
    const Fit both = fit({in.sum, other.sum}, gradient), alone = fit({other.sum}, gradient);
    if (alone.residual <= best)
      best = alone.residual, text = "is that of " + parameter_of(name);
    else if (both.residual <= best && close_to(both.weights[0], both.weights[1], 4 * most + 1e-3))
      best = both.residual, text = "has the gradient of " + parameter_of(name) + " added";
  }
  return text;
}

/// "has the gradient of the step before added", or "is the gradient of the step before"; "" if neither holds. A
/// framework clips gradients in place, or a copy.
std::string with_earlier(const Moment& now, const std::string& name, const Contributed& in, const Sketch& gradient,
                         double unit, double most) {
  const Tensor* const old = now.before ? now.before->tensors.find(name) : nullptr;
  if (!old || old->sketch.size() != gradient.size() || old->squares == 0) return "";
  const Fit both = fit({in.sum, old->sketch}, gradient);
  const double weight = both.weights[0] / unit, earlier = both.weights[1] / clip_factor(now.step).value_or(1);
  const double near = 4 * most + 1e-3;
  if (!(both.residual <= most) ||
      !(close_to(earlier, 1, near) || close_to(earlier * clip_factor(*now.before).value_or(1), 1, near)))
    return "";
  if (residual({old->sketch}, {both.weights[1]}, gradient) <= most) return "is the gradient of the step before";
  return "has the gradient of the step before added, which was not set to zero" +
         (close_to(weight, 1, near) ? "" : ", to " + factor_text(weight, {}, near) + " of its own");
}

/// "x 1.1 in 8 of 16 ranges, ...": factors of ranges that explain far more than one factor of all does, though it is
/// within the bound of a 16-bit type; "" if there are none.
std::string by_slices(const Sketch& sum, const Sketch& gradient, double unit, double left) {
  const std::size_t ranges = sum.size() / kSumsOfRange;
  if (ranges < 4 || !(left > 2 * rounding("F32"))) return "";
  std::vector<std::pair<double, std::int64_t>> factors;  // and of how many ranges
  for (std::size_t at = 0; at < ranges; ++at) {
    const Fit one = fit({range(sum, at)}, range(gradient, at));
    if (!(one.residual <= left / 8)) return "";
    const auto like = std::ranges::find_if(
        factors, [&](const auto& known) { return close_to(known.first, one.weights[0], left / 4); });
    if (like == factors.end())
      factors.emplace_back(one.weights[0], 1);
    else
      ++like->second;
  }
  if (factors.size() < 2 || factors.size() > 4 || factors.size() * 3 > ranges) return "";
  std::string text;
  for (const auto& [factor, count] : factors)
    text += (text.empty() ? "by slices: " : ", ") + factor_text(factor / unit, {}, 1e-3) + " in " + to_text(count) +
            " of " + to_text(static_cast<std::int64_t>(ranges)) + " ranges";
  return text + " of the mean of its micro-batches' gradients";
}

/// Whether each of the two ranks has only the sum of the gradients of its micro-batches.
bool is_own_share(const Step& step, const std::string& name, const probefile::Replica& ranks) {
  const Tensor* const first = step.tensors.find(name);
  if (!first || !first->whole() || ranks.sketch.size() != first->sketch.size()) return false;
  const auto alone = [&](int rank, const Sketch& gradient) {
    const Contributed local = contributed(step, parameter_of(name), gradient.size(), step.by.at(rank));
    return fit({local.sum}, gradient).residual < 1e-3;
  };
  return step.by.contains(ranks.first) && step.by.contains(ranks.second) &&
         step.by.at(ranks.first) != step.by.at(ranks.second) && alone(ranks.first, first->sketch) &&
         alone(ranks.second, ranks.sketch);
}

/// The 16-bit type in which ranks reduced a gradient, to which all its elements were rounded before they were
/// multiplied by `factor`; "" if there is none.
std::string reduced_in(const Tensor& gradient, double factor) {
  for (const char* const type : {"BF16", "F16"}) {
    std::size_t on = 0, off = 0;
    for (const double element : gradient.elements) {
      const double x = element / factor;
      if (std::isfinite(x) && x != 0) ++(std::fabs(x - rounded_to(x, type)) <= 0x1p-21 * std::fabs(x) ? on : off);
    }
    if (off == 0 && on > 1) return type;
  }
  return "";
}

/// The number of distinct factors below 1, each within its bound.
template <class Held>
std::size_t factors_below_one(const std::vector<Held>& held) {
  std::vector<double> found;
  for (const Held& one : held) {
    if (one.factor > 0 && one.factor < 1 && !close_to(one.factor, 1, one.bound) &&
        std::ranges::none_of(found, [&](double known) { return close_to(known, one.factor, one.bound); }))
      found.push_back(one.factor);
  }
  return found.size();
}

/// How far such a gradient may be from the sum of its terms, relative. float16 has no numbers below 2^-24; the few bits
/// of small ones are bfloat16's, too.
double rounding_of_reduced(const std::string& type, const Tensor& gradient, double factor, const Contributed& in,
                           double spread) {
  const double whole = std::sqrt(gradient.squares) / std::fabs(factor);
  return (half_unit(type) * spread + 0x1p-25 * std::sqrt(static_cast<double>(gradient.total)) / whole) *
         (1 + std::sqrt(static_cast<double>(in.columns.size())));
}

}  // namespace

double value_of(const std::map<std::string, double>& scalars, const std::string& name, double otherwise) {
  const auto found = scalars.find(name);
  return found == scalars.end() ? otherwise : found->second;
}

void judge_replicas_of_start(const Run& run, Tally& tally, std::int64_t number, const Tensors& tensors) {
  for (const auto& [name, tensor] : tensors.all()) {
    const auto apart = run.replicas.find({-1 - number, name});
    if (apart != run.replicas.end())
      tally.breach({number, "the start's " + name, replica_text(apart->second)});
    else if (tensor.copies > 0)
      tally.holds();
  }
}

void judge_replicas(const Run& run, Tally& tally, const Moment& now) {
  for (const auto& [name, tensor] : now.step.tensors.all()) {
    const auto apart = run.replicas.find({now.number, name});
    if (apart == run.replicas.end()) {
      if (tensor.copies > 0) tally.holds();
      continue;
    }
    std::string text = replica_text(apart->second);
    if (name.starts_with("grad/") && is_own_share(now.step, name, apart->second)) {
      std::string groups;
      for (const auto& [axis, size] : run.axes) {
        if (size > 1) groups += (groups.empty() ? "" : " or ") + axis;
      }
      text += ": each has the sum of its own micro-batches, it is not reduced over the " +
              (groups.empty() ? "" : groups + " ") + "ranks";
    }
    tally.breach({now.number, name, text});
  }
  for (const std::string& text : now.step.contradictions) tally.breach({now.number, "", text});
}

void judge_gradients(const Run& run, Tally& tally, const Moment& now) {
  const std::optional<double> clipped = clip_factor(now.step);
  const double scale = value_of(now.step.scalars, "loss_scale", 1) * micros_of(now.step);
  const auto by_value = now.step.scalars.find("clip_value");
  const std::int64_t dropped = dropped_of(run, now.step);
  bool drops = false;
  std::size_t total = 0, proven = 0;
  std::vector<std::string> without;
  struct One {
    std::string parameter, family;
    double factor;  ///< of the mean
    double bound;
  };
  std::vector<One> held;
  std::vector<Breach> apart, rounded;  // rounded: like a 16-bit type
  double squares = 0;                  // of their distances
  std::set<std::string> reduced;       // types
  for (const auto& [name, tensor] : now.step.tensors.all()) {
    if (!name.starts_with("grad/") || run.replicas.contains({now.number, name})) continue;
    const std::string parameter = parameter_of(name);
    Contributed in = contributed(now.step, parameter, tensor.sketch.size());
    if (dropped > 0) {  // a training may have added them up by itself
      Contributed kept = contributed(now.step, parameter, tensor.sketch.size(), -1, dropped);
      if (!kept.columns.empty() && kept.columns.size() < in.columns.size() &&
          is_nearer(tensor.sketch, kept.sum, in.sum,
                    clipped.value_or(1) / shares_of(run, now.step, parameter, tensor, in.ranks) / scale))
        in = std::move(kept), drops = true;
    }
    ++total;
    if (in.columns.empty()) {
      if (tensor.squares > 0) without.push_back(parameter);
      continue;
    }
    if (!std::isfinite(tensor.squares)) continue;
    const double size = norm(in.sum);
    double parts = 0, spread = 0;
    for (const Sketch& one : in.columns) parts += norm(one), spread += dot(one, one);
    spread = std::max(1.0, std::sqrt(spread) / size);
    if (!(parts > 0) && tensor.squares == 0) {
      tally.holds();
      continue;
    }
    // If terms of a sum cancel, their rounding remains. Ranks may reduce in the type of the forward pass.
    const std::string added = coarser(in.dtype, tensor.dtype);
    const double most =
        std::max(sum_rounding(run.ranks > 1 ? coarser(added, now.step.computed) : added, in.columns.size()), 1e-6) *
        (size > 0 ? std::max(1.0, parts / size) : 1e9);
    if (most > 0.1) continue;  // rounding alone
    const double factor = dot(in.sum, tensor.sketch) / dot(in.sum, in.sum);
    const double left = residual({in.sum}, {factor}, tensor.sketch);
    // Others divide the loss by the micro-batches before its backward.
    const bool undivided = run.framework.starts_with("zs-train");
    const double shares =
        undivided ? static_cast<double>(in.columns.size()) : shares_of(run, now.step, parameter, tensor, in.ranks);
    const double expected = clipped.value_or(1) / shares / scale;
    if (!(left <= 2 * most) && by_value != now.step.scalars.end() &&
        std::ranges::all_of(tensor.elements, [&](double x) {
          return !(std::fabs(x) > by_value->second * (1 + 2 * half_unit(tensor.dtype)));
        })) {
      tally.lacks("of gradients that are clipped by value, only the bound is checked");
      continue;
    }
    const double scaled = clipped.value_or(1) / scale;
    const bool off = !(left <= 2 * most) || !close_to(factor, expected, std::max(1e-4, 4 * most));
    const std::string type = run.ranks > 1 && off ? reduced_in(tensor, scaled) : "";
    if (!type.empty()) {
      const double bound = rounding_of_reduced(type, tensor, scaled, in, spread);
      if (left <= bound && close_to(factor, expected, bound)) {
        ++proven;
        if (bound < 0.1) tally.holds(), reduced.insert(type);
        continue;
      }
    }
    if (dropped > 0 && (!(left <= 2 * most) || tensor.squares == 0)) {
      tally.lacks("gradients were set to zero before the update, and what it got is not the sum of the others");
      continue;
    }
    if (!(left <= 2 * most) || tensor.squares == 0) {
      double rest = left;
      std::string text = tensor.squares == 0 ? "is zero, and its micro-batches' gradients are not"
                                             : by_weights(in, tensor.sketch, expected, 4 * most, rest);
      Finding slices;
      if (text.empty() && weighed_by_slices({{parameter, &in.sum, &tensor.sketch, left, most}},
                                            {run, now.step, nullptr}, in.keys, expected, most, slices))
        text = slices.relation;
      if (text.empty()) text = with_earlier(now, name, in, tensor.sketch, expected, 2 * most);
      if (text.empty()) text = with_another(now.step, parameter, in, tensor.sketch, 2 * most);
      const bool fine = text.empty() && left / spread > 0.1 * half_unit("F16") &&
                        left / spread < 1.8 * half_unit("BF16") && close_to(factor, expected, 1.8 * half_unit("BF16"));
      if (text.empty())
        text = "is no multiple of the sum of its micro-batches' gradients (x " + to_rounded_text(factor / expected, 3) +
               " along it)";
      (fine ? rounded : apart).push_back({now.number, name, text, left, 2 * most});
      squares += fine ? left * left / spread / spread : 0;
      continue;
    }
    if (const std::string text = by_slices(in.sum, tensor.sketch, expected, left); !text.empty()) {
      tally.breach({now.number, name, text, left, 2 * most});
      continue;
    }
    held.push_back(
        {parameter, family(run, now.step, "grad", parameter), factor * shares * scale, std::max(1e-4, 4 * most)});
  }
  if (drops) tell_dropped(now.step, dropped, tally);
  for (const char* const type : {"BF16", "F16"}) {
    if (run.ranks < 2 || !apart.empty() || rounded.empty() || 3 * rounded.size() < 2 * (total - proven) ||
        !like_rounding(std::sqrt(squares / static_cast<double>(rounded.size())), type))
      continue;
    tally.holds(static_cast<std::int64_t>(rounded.size()));
    reduced.insert(type);
    rounded.clear();
  }
  if (reduced.contains("F16")) reduced.erase("BF16");
  for (const std::string& type : reduced)
    tally.note("gradients are as far from their micro-batches' sum as rounding to " +
               std::string(type == "F16" ? "float16" : "bfloat16") + " leaves: so ranks reduce them");
  for (const auto* const some : {&apart, &rounded}) {
    for (const Breach& one : *some) tally.breach(one);
  }
  if (total > 0 && without.size() == total)
    tally.lacks("gradients of micro-batches were not recorded: attach before the first forward");
  else if (!without.empty())
    tally.lacks("the micro-batches' gradients of " + some_of(without, 1) + " were not recorded");
  for (One& one : held) {
    for (const std::string& type : reduced) one.bound = std::max(one.bound, 1.8 * half_unit(type));
  }
  if (held.empty()) return;
  // If the factor of clipping is not known: all parameters have the same factor, at most 1.
  std::vector<double> relative;
  for (const One& one : held) relative.push_back(one.factor);
  std::vector<double> sorted = relative;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
  const double median = sorted[sorted.size() / 2];
  const bool known = clipped.has_value();
  // Each clipping of a part has one factor, and a gradient may be in several parts.
  const double parts = value_of(now.step.scalars, "clips", 0);
  const bool in_parts = parts > 0 && static_cast<double>(factors_below_one(held)) < std::exp2(parts);
  const bool unseen =
      !known && !in_parts && median > 0 && median < 1 - 1e-3;  // clipped or scaled by an unrecorded factor
  const double wanted = known ? *clipped : unseen ? median : 1;
  if (unseen)
    tally.lacks(
        "all gradients are multiplied by one factor below 1, and no clipping was seen: clip by "
        "torch.nn.utils.clip_grad_norm_");
  for (std::size_t i = 0; i < held.size(); ++i) {
    const One& one = held[i];
    if (close_to(relative[i], wanted, one.bound)) {
      tally.holds();
      continue;
    }
    if (in_parts && relative[i] > 0 && relative[i] < 1) {
      tally.lacks("a part of the gradients was clipped, or by another norm: by which factor is not known");
      continue;
    }
    // A cause or a contract changes all parameters of a family.
    std::int64_t others = 0;
    for (std::size_t j = 0; j < held.size(); ++j)
      others += held[j].family == one.family && !close_to(relative[j], relative[i], one.bound);
    if (const std::string text = by_contract(run, now.step, relative[i] / wanted); others == 0 && !text.empty()) {
      tally.holds();
      tally.note(text);
      continue;
    }
    Causes causes;
    const double clipped_by = relative[i] / wanted;
    const auto told = [&](double factor) { return factor_text(factor, causes.all(), std::max(one.bound, 1e-3)); };
    const auto explains = [&](double factor) { return told(factor).ends_with(')'); };
    if (others == 0) causes.next_scale(now.step);
    if (others == 0 && !explains(clipped_by) && !explains(relative[i]))  // else this step alone has the cause
      causes.ranks(run, now.step), causes.micro_batches(run, now.step), causes.scale(now.step),
          causes.clipping(now.step);
    const bool unclipped = wanted == 1 || (explains(relative[i]) && !explains(clipped_by));
    const double apart_by = unclipped ? relative[i] : clipped_by;
    tally.breach({now.number, "grad/" + one.parameter,
                  told(apart_by) + " of the mean of its micro-batches' gradients" + (unclipped ? "" : ", clipped") +
                      (others == 0 ? ""
                                   : ", and " + to_text(others) +
                                         (others == 1 ? " other gradient is" : " other gradients are") + " not"),
                  std::fabs(apart_by - 1), one.bound});
  }
}

}  // namespace zs::probe
