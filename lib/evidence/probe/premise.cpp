// SPDX-License-Identifier: Apache-2.0
#include "probe/premise.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

#include "base/number.hpp"

namespace zs::probe {
namespace {

std::set<std::string> samples_of(const Step& step) {
  std::set<std::string> found;
  for (const auto& [rank, row] : step.ranks) {
    for (const auto& batch : row.batch) found.insert(batch.begin(), batch.end());
  }
  return found;
}

std::set<std::string> less(const std::set<std::string>& a, const std::set<std::string>& b) {
  std::set<std::string> left;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::inserter(left, left.end()));
  return left;
}

/// The parameter with which `name` is tied, if a run says so.
std::string tied_to(const Run& run, const std::string& name) {
  for (const auto& [first, others] : run.ties) {
    if (std::find(others.begin(), others.end(), name) != others.end()) return first;
  }
  return "";
}

/// How a parameter changed between the last update and this forward: ": it is ...", or "".
std::string changed(const Tensor& left, const Tensor& now, const Side& side, bool copy, const std::string& parameter,
                    std::int64_t step) {
  const auto replica = side.run.replicas.find({step, (copy ? "begin.model/" : "begin/") + parameter});
  if (replica != side.run.replicas.end()) return ": " + replica_text(replica->second);
  if (norm(now.sketch) == 0) return ": it is zero";
  Sketch by = now.sketch;
  for (std::size_t i = 0; i < by.size(); ++i) by[i] -= left.sketch[i];
  const auto start = side.run.starts.find(step - 2);
  const Tensors* const older = start != side.run.starts.end()      ? &start->second
                               : side.run.steps.contains(step - 2) ? &side.run.steps.at(step - 2).tensors
                                                                   : nullptr;
  const Tensor* const old = older ? older->find("param/" + parameter) : nullptr;
  if (old && old->sketch.size() == by.size()) {
    const double most = now.dtype == old->dtype ? 1e-7 : rounding(coarser(now.dtype, old->dtype)) / 8;
    if (distance(old->sketch, now.sketch) <= most)
      return ": it is stale, that of before the update of step " + to_text(step - 1);
    Sketch update = left.sketch;
    for (std::size_t i = 0; i < by.size(); ++i) update[i] -= old->sketch[i];
    const Fit decayed = fit({old->sketch}, by), moved = fit({update}, by);
    if (decayed.residual < 2e-2 && std::fabs(decayed.weights[0]) < 0.05)  // a rate times a decay is small
      return ": it was changed by " + to_rounded_text(decayed.weights[0], 3) +
             " x parameter, as by another weight decay";
    if (moved.residual < 1e-2) return ": the update counts " + to_rounded_text(1 + moved.weights[0], 3) + " times";
  }
  const Fit scaled = fit({left.sketch}, now.sketch);
  if (scaled.residual < 1e-4) return ": " + factor_text(scaled.weights[0], {}, 1e-4);
  return "";
}

/// The target tokens of a step: a micro-batch that several ranks hold counts once. Nothing if they are unknown.
std::optional<std::int64_t> targets_of(const Step& step) {
  std::set<std::pair<std::size_t, std::vector<std::string>>> held;
  std::optional<std::int64_t> total;
  for (const auto& [rank, row] : step.ranks) {
    for (std::size_t micro = 0; micro < row.targets.size(); ++micro) {
      if (!row.targets[micro]) return std::nullopt;
      const bool known = micro < row.batch.size();
      if (known && !row.batch[micro].empty() && !held.emplace(micro, row.batch[micro]).second) continue;
      total = total.value_or(0) + *row.targets[micro];
    }
  }
  return total;
}

}  // namespace

Samples::Samples(const Run& a, const Run& b) : a_(a), b_(b) {
  for (const auto& [number, step] : a.steps) all_.merge(samples_of(step));
}

void Samples::grow(std::int64_t after) {
  for (auto step = b_.steps.upper_bound(after); step != b_.steps.end(); ++step) {
    const auto samples = samples_of(step->second);
    comparable_ |= std::any_of(samples.begin(), samples.end(), [&](const std::string& s) { return all_.contains(s); });
  }
}

std::optional<Finding> Samples::apart(std::int64_t number) const {
  if (!comparable_) return std::nullopt;
  const auto left = samples_of(a_.steps.at(number)), right = samples_of(b_.steps.at(number));
  const auto missing = less(left, right), other = less(right, left);
  if (left.empty() || right.empty() || (missing.empty() && other.empty())) return std::nullopt;
  std::string text = "batch: ";
  if (!missing.empty())
    text += std::to_string(missing.size()) + " of " + std::to_string(left.size()) + " samples are missing";
  if (!other.empty()) {
    text += (missing.empty() ? "" : ", ") + std::to_string(other.size()) + " samples are others";
    for (const auto& [step, held] : a_.steps) {
      if (step != number && less(other, samples_of(held)).empty()) {
        text += ": those of step " + to_text(step);
        break;
      }
    }
  } else if (right.size() < left.size()) {
    text += ": B has " + std::to_string(right.size()) + " samples";
  }
  return said(number, "batch", "", text);
}

std::optional<Finding> targets_apart(std::int64_t step, const Side& a, const Side& b) {
  const auto left = targets_of(a.step), right = targets_of(b.step);
  if (!left || !right || *left == *right || samples_of(a.step).empty() != samples_of(b.step).empty())
    return std::nullopt;
  std::string text = to_text(*right) + " target tokens for " + to_text(*left);
  if (*left > 0 && *right > 0)
    text += ", " + factor_text(static_cast<double>(*right) / static_cast<double>(*left), {}, 1e-9);
  Finding finding = said(step, "targets", "", text + ": the loss is of other tokens");
  finding.distance = std::fabs(static_cast<double>(*right - *left)) / static_cast<double>(std::max(*left, *right));
  return finding;
}

std::optional<Finding> parameters_apart(std::int64_t step, const Side& a, const Side& b) {
  struct One {
    const Side *has, *lacks;
    const char *name, *other;
  };
  for (const One& one : {One{&a, &b, "A", "B"}, One{&b, &a, "B", "A"}}) {
    for (const auto& [name, tensor] : one.has->step.tensors.all()) {
      const bool gradient = name.starts_with("grad/");
      if ((!gradient && !name.starts_with("param/")) || one.lacks->step.tensors.find(name)) continue;
      const std::string parameter = parameter_of(name);
      const std::string side = one.name, other = one.other;
      if (const std::string first = tied_to(one.lacks->run, parameter); !first.empty())
        return said(step, "parameter", parameter,
                    parameter + " is tied to " + first + " in " + other + ", a parameter of its own in " + side);
      const bool frozen = one.lacks->run.frozen.contains(parameter), also = one.has->run.frozen.contains(parameter);
      if (frozen && also) continue;
      if (frozen)
        return said(step, "parameter", parameter, parameter + " is frozen in " + other + ", trained in " + side);
      if (!gradient && !also && one.lacks->run.unseen.empty())
        return said(step, "parameter", parameter, parameter + " is in no group of " + other + "'s optimizer");
    }
  }
  return std::nullopt;
}

std::optional<Finding> found_apart(std::int64_t step, const Side& a, const Side& b) {
  for (const auto& [side, other, who] : {std::tuple{&b, &a, "B"}, std::tuple{&a, &b, "A"}}) {
    if (!side->previous) continue;
    std::vector<std::string> names;
    std::set<std::string> how;
    std::size_t total = 0;
    std::vector<Apart> apart;
    std::vector<const Tensor*> before, after;
    for (const auto& [name, now] : side->step.tensors.all()) {
      const bool copy = name.starts_with("begin.model/");
      total += name.starts_with("param/");
      if (!copy && !name.starts_with("begin/")) continue;
      const std::string parameter = parameter_of(name);
      const Tensor* const left = side->previous->tensors.find((copy ? "model/" : "param/") + parameter);
      const Tensor* const theirs = other->step.tensors.find(name);
      if (!left || left->sketch.size() != now.sketch.size() || !std::isfinite(now.squares) ||
          (theirs && distance(theirs->sketch, now.sketch) <= rounding(coarser(now.dtype, theirs->dtype))))
        continue;
      apart.push_back({parameter, &left->sketch, &now.sketch, distance(left->sketch, now.sketch), 0});
      before.push_back(left), after.push_back(&now);
      if (std::find(names.begin(), names.end(), parameter) == names.end()) names.push_back(parameter);
      how.insert(changed(*left, now, *side, copy, parameter, step));
    }
    if (names.empty()) continue;
    if (how == std::set<std::string>{""} && rounded_everywhere(apart, before, after, total))
      how = {": as far apart as rounding to bfloat16 leaves"};
    Finding finding = said(step, "begin", names.front(),
                           std::string(who) + "'s forward computes with what is not what the update of step " +
                               to_text(step - 1) + " left" + (how.size() == 1 ? *how.begin() : ""));
    finding.tensors = names;
    finding.total = total;
    finding.distance = apart.front().distance;
    return finding;
  }
  return std::nullopt;
}

std::optional<Finding> copies_apart(std::int64_t step, const Side& b, const char* who) {
  std::vector<std::string> names;
  std::set<std::string> how;
  double by = 0, allowed = 0;
  std::size_t total = 0;
  for (const auto& [name, copy] : b.step.tensors.all()) {
    if (!name.starts_with("model/")) continue;
    const std::string parameter = name.substr(6);
    const Tensor* const master = b.step.tensors.find("param/" + parameter);
    if (!master || master->sketch.size() != copy.sketch.size() || !copy.whole() || !master->whole()) continue;
    ++total;
    // A number of 16 bits is up to half a unit in the last place away from its source.
    const double most = copy.dtype == master->dtype ? 1e-9 : rounding(coarser(copy.dtype, master->dtype)) / 8;
    const double apart = distance(copy.sketch, master->sketch);
    if (apart <= most) continue;
    if (names.empty()) by = apart, allowed = most;
    names.push_back(parameter);
    const Tensor* const old = b.previous ? b.previous->tensors.find("param/" + parameter) : nullptr;
    how.insert(old && old->sketch.size() == copy.sketch.size() && distance(copy.sketch, old->sketch) <= most
                   ? ": it is stale, that of step " + to_text(step - 1)
                   : "");
  }
  if (names.empty()) return std::nullopt;
  Finding finding = said(step, "copy", names.front(),
                         std::string(who) + "'s forward computes with what is not what the update made" +
                             (how.size() == 1 ? *how.begin() : ""));
  finding.tensors = names;
  finding.total = total;
  finding.distance = by;
  finding.bound = allowed;
  return finding;
}

}  // namespace zs::probe
