// SPDX-License-Identifier: Apache-2.0
// Checks of gradients: replicas, sums of micro-batches, norm and clipping.
#include <algorithm>
#include <cmath>

#include "base/number.hpp"
#include "base/words.hpp"
#include "probe/bounds.hpp"
#include "probe/judges.hpp"

namespace zs::probe {
namespace {

constexpr double kEps = 1e-6;  // which clipping adds to the norm

/// The factor by which clipping multiplies gradients; 1 without a bound, nothing if the norm is not known.
std::optional<double> clip_factor(const Step& step) {
  const auto norm = step.scalars.find("norm"), clip = step.scalars.find("clip");
  if (step.scalars.contains("clips")) return std::nullopt;
  if (clip == step.scalars.end()) return norm == step.scalars.end() ? std::nullopt : std::optional(1.0);
  if (norm == step.scalars.end()) return std::nullopt;
  if (!(clip->second > 0)) return 1.0;
  return std::min(1.0, clip->second / (norm->second + kEps));
}

double value_of(const std::map<std::string, double>& scalars, const std::string& name, double otherwise) {
  const auto found = scalars.find(name);
  return found == scalars.end() ? otherwise : found->second;
}

bool close_to(double a, double b, double by) { return std::fabs(a - b) <= by * std::max(std::fabs(a), std::fabs(b)); }

/// A parameter's contributions, their sum and the number of data-parallel ranks that have one.
struct Contributed {
  Sketch sum;
  std::vector<Sketch> columns;
  std::vector<std::pair<int, int>> keys;
  std::set<int> ranks;
  std::string dtype;
};

Contributed contributed(const Step& step, const std::string& parameter, std::size_t size) {
  Contributed found;
  found.sum.assign(size, 0);
  for (const auto& [key, local] : step.locals) {
    const Tensor* const one = local.tensors.find(parameter);
    if (!one || one->sketch.size() != size) continue;
    for (std::size_t i = 0; i < size; ++i) found.sum[i] += one->sketch[i];
    found.columns.push_back(one->sketch);
    found.keys.push_back(key);
    found.ranks.insert(key.first);
    found.dtype = coarser(found.dtype, one->dtype);
  }
  return found;
}

/// Numbers that may explain a factor: equal ones have one name, which has all of theirs.
Constants group_sizes(const Run& run, std::size_t ranks, std::size_t micros) {
  std::map<double, std::string> names;
  const auto add = [&](const std::string& name, double value) {
    if (value > 1) names[value] += (names[value].empty() ? "" : " or ") + name;
  };
  for (const auto& [name, size] : run.axes) add(name + " ranks", static_cast<double>(size));
  if (std::ranges::none_of(run.axes, [&](const auto& axis) { return axis.second == static_cast<std::int64_t>(ranks); }))
    add("ranks", static_cast<double>(ranks));
  add("micro-batches", static_cast<double>(micros));
  Constants found;
  for (const auto& [value, name] : names) found.emplace_back(name, value);
  return found;
}

/// What a framework multiplies gradients with by design: "" if nothing. Sequence parallelism by an mpu sums over the
/// ranks of a sequence in DeepSpeed.
std::string by_contract(const Run& run, double factor) {
  const auto sequence = run.axes.find("sequence");
  if (run.framework.starts_with("DeepSpeed") && sequence != run.axes.end() && sequence->second > 1 &&
      std::fabs(factor - static_cast<double>(sequence->second)) < 1e-3 * factor)
    return "by contract: DeepSpeed sums gradients over sequence ranks (x " + to_text(sequence->second) + ")";
  return "";
}

std::string named_micro(std::pair<int, int> key, std::size_t ranks) {
  const std::string text = "micro-batch " + std::to_string(key.second + 1);
  return ranks > 1 ? text + " of rank " + std::to_string(key.first) : text;
}

/// "micro-batch 2 of rank 1 counts 0 times", each weight relative to the expected one; "" if no sum of them fits.
std::string by_weights(const Contributed& in, const Sketch& gradient, double unit, double most, double& residual_left) {
  if (in.columns.size() < 2 || in.columns.size() * 2 > gradient.size()) return "";
  const Fit real = fit(in.columns, gradient);
  if (!(real.residual <= most)) return "";
  residual_left = real.residual;
  std::string text;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < in.keys.size(); ++i) {
    const double times = real.weights[i] / unit;
    if (std::fabs(times - 1) <= std::max(0.02, 8 * most)) continue;
    if (++shown <= 4)
      text += (text.empty() ? "" : ", ") + named_micro(in.keys[i], in.ranks.size()) +
              (std::fabs(times) < 0.02 ? " is missing" : " counts " + to_rounded_text(times, 3) + " times");
  }
  if (shown > 4) text += ", and " + to_text(static_cast<std::int64_t>(shown - 4)) + " more";
  return text;
}

}  // namespace

bool ReplicaJudge::is_own_share(const Step& step, const std::string& name, const probefile::Replica& ranks) const {
  const Tensor* const first = step.tensors.find(name);
  if (!first || !first->whole() || ranks.sketch.size() != first->sketch.size()) return false;
  const auto alone = [&](int rank, const Sketch& gradient) {
    const auto share = step.by.find(rank);
    if (share == step.by.end()) return false;
    Sketch sum(gradient.size(), 0);
    for (const auto& [key, local] : step.locals) {
      const Tensor* const one = local.tensors.find(parameter_of(name));
      for (std::size_t i = 0; key.first == share->second && one && i < sum.size(); ++i) sum[i] += one->sketch[i];
    }
    return fit({sum}, gradient).residual < 1e-3;
  };
  return step.by.contains(ranks.first) && step.by.contains(ranks.second) &&
         step.by.at(ranks.first) != step.by.at(ranks.second) && alone(ranks.first, first->sketch) &&
         alone(ranks.second, ranks.sketch);
}

void ReplicaJudge::start(std::int64_t number, const Tensors& tensors) {
  for (const auto& [name, tensor] : tensors.all()) {
    const auto apart = run_.replicas.find({-1 - number, name});
    if (apart != run_.replicas.end())
      tally_.breach({number, "the start's " + name,
                     "rank " + std::to_string(apart->second.second) + " holds other values than rank " +
                         std::to_string(apart->second.first)});
    else if (tensor.copies > 0)
      tally_.holds();
  }
}

void ReplicaJudge::step(const Moment& now) {
  for (const auto& [name, tensor] : now.step.tensors.all()) {
    const auto apart = run_.replicas.find({now.number, name});
    if (apart == run_.replicas.end()) {
      if (tensor.copies > 0) tally_.holds();
      continue;
    }
    std::string text = "rank " + std::to_string(apart->second.second) + " holds other values than rank " +
                       std::to_string(apart->second.first);
    if (name.starts_with("grad/") && is_own_share(now.step, name, apart->second)) {
      std::string groups;
      for (const auto& [axis, size] : run_.axes) {
        if (size > 1) groups += (groups.empty() ? "" : " or ") + axis;
      }
      text += ": each has the sum of its own micro-batches, it is not reduced over the " + (groups.empty() ? "" : groups + " ") + "ranks";
    }
    tally_.breach({now.number, name, text});
  }
  for (const std::string& text : now.step.contradictions) tally_.breach({now.number, "", text});
}

void GradientJudge::step(const Moment& now) {
  const std::optional<double> clipped = clip_factor(now.step);
  const double scale = value_of(now.step.scalars, "loss_scale", 1);
  std::map<std::string, double> factors;  // of each parameter what all its contributions were multiplied with
  std::size_t without = 0, all = 0;
  std::vector<double> common;
  struct One {
    std::string parameter;
    double factor;  ///< of the mean
    std::size_t ranks, micros;
    double bound;
  };
  std::vector<One> held;
  for (const auto& [name, tensor] : now.step.tensors.all()) {
    if (!name.starts_with("grad/") || run_.replicas.contains({now.number, name})) continue;
    const std::string parameter = parameter_of(name);
    const Contributed in = contributed(now.step, parameter, tensor.sketch.size());
    ++all;
    if (in.columns.empty()) {
      without += tensor.squares > 0;
      continue;
    }
    if (!std::isfinite(tensor.squares)) continue;
    const double size = norm(in.sum);
    double parts = 0;
    for (const Sketch& one : in.columns) parts += norm(one);
    if (!(parts > 0) && tensor.squares == 0) {
      tally_.holds();
      continue;
    }
    // What cancels in the sum leaves the rounding of its terms.
    const double most = std::max(sum_rounding(coarser(coarser(in.dtype, tensor.dtype), now.step.computed), in.columns.size()), 1e-6) *
                        (size > 0 ? std::max(1.0, parts / size) : 1e9);
    if (most > 0.1) continue;  // rounding alone
    const double factor = dot(in.sum, tensor.sketch) / dot(in.sum, in.sum);
    const double left = residual({in.sum}, {factor}, tensor.sketch);
    // Others divide the loss by the micro-batches before its backward.
    const bool undivided = run_.framework.starts_with("zs-train");
    std::size_t ranks = in.ranks.size();
    if (const auto data = run_.axes.find("data"); run_.axes.contains("pipeline") && data != run_.axes.end())
      ranks = std::min(ranks, static_cast<std::size_t>(data->second));  // tied stages have summands each
    const double shares = static_cast<double>(undivided ? in.columns.size() : ranks);
    const double expected = clipped.value_or(1) / shares / scale;
    if (!(left <= 2 * most) || tensor.squares == 0) {
      double rest = left;
      std::string text = tensor.squares == 0 ? "is zero, and its micro-batches' gradients are not"
                                             : by_weights(in, tensor.sketch, expected, 4 * most, rest);
      if (text.empty()) text = "is no multiple of the sum of its micro-batches' gradients (x " + to_rounded_text(factor / expected, 3) + " along it)";
      tally_.breach({now.number, name, text, left, 2 * most});
      continue;
    }
    held.push_back({parameter, factor * shares, in.ranks.size(), in.columns.size() / in.ranks.size(), std::max(1e-4, 4 * most)});
  }
  if (all > 0 && without == all)
    tally_.lacks("gradients of micro-batches were not recorded: attach before the first forward");
  else if (without > 0)
    tally_.lacks("of " + to_text(static_cast<std::int64_t>(without)) + " parameters the micro-batches' gradients were not recorded");
  if (held.empty()) return;
  // Where the factor of clipping is not known, it is one for all parameters, and at most 1.
  std::vector<double> relative;
  for (const One& one : held) relative.push_back(one.factor);
  std::vector<double> sorted = relative;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
  const double median = sorted[sorted.size() / 2];
  const bool known = clipped.has_value();
  const bool unseen = !known && median > 0 && median < 1 - 1e-3;  // clipped or scaled by what nothing tells
  const double wanted = known ? *clipped / scale : unseen ? median : 1 / scale;
  if (unseen)
    tally_.lacks("all gradients are multiplied by one factor below 1, and no clipping was seen: clip by torch.nn.utils.clip_grad_norm_");
  for (std::size_t i = 0; i < held.size(); ++i) {
    const One& one = held[i];
    if (close_to(relative[i], wanted, one.bound)) {
      tally_.holds();
      continue;
    }
    if (const std::string text = by_contract(run_, relative[i] / wanted); !text.empty()) {
      tally_.holds();
      tally_.note(text);
      continue;
    }
    Constants constants = group_sizes(run_, one.ranks, one.micros);
    const auto bound = now.step.scalars.find("clip"), told = now.step.scalars.find("norm");
    if (bound != now.step.scalars.end() && told != now.step.scalars.end() && bound->second > 0 && told->second > bound->second)
      constants.emplace_back("norm over the bound of clipping", told->second / bound->second);
    tally_.breach({now.number, "grad/" + one.parameter,
                   factor_text(relative[i] / wanted, constants, std::max(one.bound, 1e-3)) + " of the mean of its micro-batches' gradients" +
                       (wanted == 1 ? "" : ", clipped"),
                   std::fabs(relative[i] / wanted - 1), one.bound});
  }
}

void NormJudge::step(const Moment& now) {
  const auto told = now.step.scalars.find("norm");
  if (now.step.scalars.contains("clips"))
    tally_.note("a part of the gradients was clipped, or by another norm than the square root of the sum of squares: not checked");
  if (told == now.step.scalars.end() || !std::isfinite(told->second)) return;
  double squares = 0;
  bool half = false, unknown = false;
  std::vector<std::pair<std::string, double>> of;
  for (const auto& [name, tensor] : now.step.tensors.all()) {
    if (name.starts_with("direction/")) unknown = true;
    if (!name.starts_with("grad/")) continue;
    squares += tensor.squares;
    half |= tensor.dtype == "BF16" || tensor.dtype == "F16";
    of.emplace_back(parameter_of(name), tensor.squares);
  }
  if (unknown) return tally_.lacks("Muon's directions replace gradients, whose norm is not known");
  if (of.empty() || !std::isfinite(squares)) return;
  const double factor = clip_factor(now.step).value_or(1);
  const double expected = told->second * factor, found = std::sqrt(squares), most = half ? 4e-3 : 2e-5;
  if (close_to(expected, found, most)) {
    tally_.holds();
    return;
  }
  const double whole = factor > 0 ? found / factor : found;  // before clipping
  const double more = told->second * told->second - whole * whole;
  std::string text = "norm of gradients before clipping " + to_rounded_text(whole, 6) + ", " + to_text(told->second) + " is told: ";
  std::string by;
  if (clip_factor(now.step).value_or(1) < 1 && close_to(found, told->second, most)) {
    text = "gradients are not clipped: their norm is " + to_rounded_text(found, 6) + ", the bound " +
           to_text(now.step.scalars.at("clip"));
    by = " ";
  }
  for (const auto& [parameter, square] : of) {
    if (!by.empty()) break;
    const double mine = square / (factor * factor);
    if (!(mine > 1e-4 * whole * whole)) continue;
    if (close_to(more, mine, 1e-3))
      by = parameter + " counts twice";
    else if (close_to(-more, mine, 1e-3))
      by = parameter + " is left out";
  }
  // Of the parameters that one rank holds: a stage, or the rank's experts. Each rank's own norm, and their mean.
  std::map<int, double> of_ranks;
  for (const auto& [name, tensor] : now.step.tensors.all()) {
    if (!name.starts_with("grad/") || tensor.pieces.empty()) continue;
    for (const Tensor::Piece& piece : tensor.pieces)
      of_ranks[piece.rank] += tensor.squares * static_cast<double>(piece.count) / static_cast<double>(std::max<std::int64_t>(1, tensor.held)) / (factor * factor);
  }
  for (const auto& [rank, square] : of_ranks) {
    if (by.empty() && of_ranks.size() > 1 && close_to(told->second, std::sqrt(square), 1e-4))
      by = "that of the parameters of rank " + std::to_string(rank) + " alone";
  }
  if (by.empty()) by = factor_text(told->second / whole, {{"square root of ranks", std::sqrt(static_cast<double>(run_.ranks))},
                                                          {"ranks", static_cast<double>(run_.ranks)}}, 1e-3);
  if (by == " ") by.clear();
  tally_.breach({now.number, "norm", text + by, std::fabs(expected / found - 1), most});
}

}  // namespace zs::probe
