// SPDX-License-Identifier: Apache-2.0
// Checks of parameters: copies that compute, what forward finds, what moves.
#include <algorithm>
#include <cmath>

#include "base/number.hpp"
#include "base/words.hpp"
#include "probe/judges.hpp"
#include "probe/options.hpp"

namespace zs::probe {
namespace {

/// Whether an update of plain SGD is too small to move most elements: a gradient that is rounding alone, as of a key's
/// bias.
bool is_lost(const Group& group, const Tensor& gradient, const Tensor& parameter) {
  const auto rule = rule_of(group);
  return rule && rule->kind == Kind::sgd &&
         rule->rate * std::sqrt(gradient.squares) < half_unit(parameter.dtype) * std::sqrt(parameter.squares);
}

/// ": elements are set to zero, as pruning does" if that is all that changed; else "".
std::string pruned(const Tensor& left, const Tensor& found) {
  if (left.elements.size() != found.elements.size() || !(found.squares < left.squares)) return "";
  bool kept = false;
  for (std::size_t i = 0; i < found.elements.size(); ++i) {
    if (found.elements[i] != 0 && found.elements[i] != left.elements[i]) return "";
    kept |= found.elements[i] != 0;
  }
  return kept ? ": elements are set to zero, as pruning does" : "";
}

}  // namespace

void judge_masters(const Run& run, Tally& tally, const Moment& now) {
  for (const auto& [name, copy] : now.step.tensors.all()) {
    if (!name.starts_with("model/")) continue;
    const std::string parameter = parameter_of(name);
    const Tensor* const master = now.step.tensors.find("param/" + parameter);
    if (!master || run.replicas.contains({now.number, name})) continue;
    if (copy.elements.empty() || master->elements.size() != copy.elements.size()) {
      // By sums: rounding leaves at most half a unit of each element.
      const double apart = distance(master->sketch, copy.sketch),
                   most = copy.dtype == master->dtype ? 1e-12 : 1.5 * half_unit(copy.dtype);
      if (apart <= most)
        tally.holds();
      else
        tally.breach({now.number, name, "is not the rounded copy of what the optimizer moved", apart, most});
      continue;
    }
    std::size_t differ = 0, total = 0, before = 0;
    // Between two nearest values, some round up; a master of 16 bits was rounded after its copy was made.
    const bool again = half_unit(master->dtype) > half_unit("F32") && master->dtype != copy.dtype;
    const double slack = again ? 2 * half_unit(master->dtype) : 0;
    const Tensor* const old = now.from ? now.from->find("param/" + parameter) : nullptr;
    for (std::size_t i = 0; i < copy.elements.size(); ++i) {
      if (std::isnan(copy.elements[i]) || std::isnan(master->elements[i])) continue;
      ++total;
      const double kept = master->elements[i], nearest = rounded_to(kept, copy.dtype);
      if (std::fabs(copy.elements[i] - kept) <= std::fabs(nearest - kept) + slack * std::fabs(kept)) continue;
      ++differ;
      before += old && i < old->elements.size() && copy.elements[i] == rounded_to(old->elements[i], copy.dtype);
    }
    if (differ == 0)
      tally.holds();
    else
      tally.breach({now.number, name,
                    before == differ ? "is stale: the rounded copy of the parameter before this step"
                                     : to_text(static_cast<std::int64_t>(differ)) + " of " +
                                           to_text(static_cast<std::int64_t>(total)) +
                                           " elements are not the rounded ones of what the optimizer moved",
                    distance(master->sketch, copy.sketch), 0});
  }
}

void judge_found(const Run& run, Tally& tally, const Moment& now) {
  if (!now.before) return;
  bool any = false;
  for (const auto& [name, found] : now.step.tensors.all()) {
    const bool copy = name.starts_with("begin.model/");
    if (!copy && !name.starts_with("begin/")) continue;
    any = true;
    const std::string parameter = parameter_of(name), place = (copy ? "model/" : "param/") + parameter;
    const Tensor* const left = now.before->tensors.find(place);
    if (left && left->digest == found.digest && left->total == found.total && found.whole()) {  // cut otherwise
      tally.holds();
      continue;
    }
    std::string relation =
        "forward computes with other values than the update of step " + to_text(now.number - 1) + " left";
    double by = 1;
    const Tensor* const older =
        run.steps.contains(now.number - 2) ? run.steps.at(now.number - 2).tensors.find(place) : nullptr;
    const bool stale =
        older && (older->digest == found.digest || std::ranges::all_of(found.pieces, [&](const auto& piece) {
                    return std::ranges::any_of(older->pieces, [&](const auto& old) {
                      return old.key == piece.key && old.digest == piece.digest;
                    });
                  }));
    if (!found.whole()) {  // a part that is as the update left it is not written
      std::set<std::string> ranks;
      for (const Tensor::Piece& piece : found.pieces) ranks.insert(std::to_string(piece.rank));
      relation += ", on rank " + joined(ranks, " and ");
    } else if (left && left->sketch.size() == found.sketch.size()) {
      const Fit one = fit({left->sketch}, found.sketch);
      by = distance(left->sketch, found.sketch);
      if (one.residual < 1e-4 && std::fabs(one.weights[0] - 1) > 1e-6)
        relation += ": " + factor_text(one.weights[0], {}, 1e-4);
      else
        relation += pruned(*left, found);
    }
    if (stale) relation += ": those of the step before, it is stale";
    const auto replica = run.replicas.find({now.number, name});
    if (replica != run.replicas.end()) relation += "; " + replica_text(replica->second);
    tally.breach({now.number, name, relation, by, 0});
  }
  if (!any && std::ranges::any_of(now.step.ranks, [](const auto& rank) { return !rank.second.batch.empty(); }))
    tally.holds();
}

void MotionJudge::start(std::int64_t, const Tensors& tensors) {
  for (const auto& [name, tensor] : tensors.all()) {
    if (name.starts_with("param/")) seen_.try_emplace(parameter_of(name)).first->second.first = tensor.digest;
  }
}

/// Backward gives a gradient only to what is trained.
void MotionJudge::frozen(const Moment& now, const std::string& name, const Tensor& tensor, const Tensor* gradient,
                         Seen& seen) {
  if (seen.trained > 0) return;
  const Tensor* const before = now.from ? now.from->find(name) : nullptr;
  const bool moved = before ? before->digest != tensor.digest : seen.at > 0 && seen.last != tensor.digest;
  if (gradient && gradient->squares > 0)
    seen.trained = now.number;
  else if (moved && !before && seen.at < now.number - 1)
    tally_.lacks("a frozen parameter moved in steps that were not recorded: it may have been trained in them");
  else
    seen.still_moved |= moved;
  seen.last = tensor.digest, seen.at = now.number;
}

void MotionJudge::step(const Moment& now) {
  const auto groups = groups_of(now.step);
  for (const auto& [name, tensor] : now.step.tensors.all()) {
    const std::string parameter = parameter_of(name);
    if (name.starts_with("param/")) {
      const auto [known, added] = seen_.try_emplace(parameter);
      Seen& seen = known->second;
      const Tensor* const gradient = now.step.tensors.find("grad/" + parameter);
      if (run_.frozen.contains(parameter)) frozen(now, name, tensor, gradient, seen);
      if (added) {
        seen.first = tensor.digest;
        continue;
      }
      ++seen.steps;
      seen.moved |= seen.first != tensor.digest;
      const auto group = groups.find(parameter);
      seen.rated |= group != groups.end() && number_of(*group->second, "lr", 0) != 0;
      seen.lost |= group != groups.end() && gradient && is_lost(*group->second, *gradient, tensor);
    } else if (name.starts_with("grad/") || name.starts_with("direction/")) {
      Seen& seen = seen_[parameter];
      ++seen.gradients;
      seen.zero += tensor.squares == 0;
    }
  }
}

void MotionJudge::end() {
  for (const std::string& parameter : run_.loose)
    tally_.breach({0, "param/" + parameter, "is trained, and no optimizer moves it"});
  const auto steps_text = [](std::int64_t steps) { return to_text(steps) + " steps"; };
  std::map<std::int64_t, std::vector<std::string>> later;
  for (const auto& [parameter, seen] : seen_) {
    if (seen.steps < 2) continue;
    if (seen.trained > 0) later[seen.trained].push_back(parameter);
    if (run_.frozen.contains(parameter) && (seen.trained == 0 || seen.still_moved)) {
      if (seen.still_moved)
        tally_.breach({0, "param/" + parameter, "is frozen, and moves"});
      else
        tally_.holds();
      continue;
    }
    if (seen.gradients == 0 && std::ranges::any_of(run_.unseen, [&](const std::string& text) {
          return text.starts_with("grad of " + parameter + " ");
        }))
      tally_.lacks("the gradient of " + parameter);
    else if (seen.gradients == 0)
      tally_.breach(
          {0, "grad/" + parameter, "there is none in all " + steps_text(seen.steps) + ", though the optimizer has it"});
    else if (seen.zero == seen.gradients)
      tally_.breach({0, "grad/" + parameter, "is zero in all " + steps_text(seen.steps)});
    else if (!seen.moved && seen.lost)
      tally_.holds();
    else if (!seen.moved && seen.rated)
      tally_.breach(
          {0, "param/" + parameter, "never moves in " + steps_text(seen.steps) + ", though its gradient is not zero"});
    else if (!seen.moved)
      tally_.breach({0, "param/" + parameter, "never moves in " + steps_text(seen.steps) + ": its group's rate is 0"});
    else
      tally_.holds();
  }
  for (const auto& [step, names] : later)
    tally_.note("trained from step " + to_text(step) + " on, and frozen before: " + some_of(names, 3));
}

}  // namespace zs::probe
