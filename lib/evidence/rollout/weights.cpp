// SPDX-License-Identifier: Apache-2.0
#include "rollout/answer.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/words.hpp"
#include "compare/ledger.hpp"
#include "probe/relation.hpp"
#include "probefile/read.hpp"

namespace zs::rollout {
namespace {

using compare::Verdict;
using probefile::Run;
using probefile::Tensor;
using probefile::Tensors;

/// The tensors of each version, oldest first.
std::map<std::int64_t, const Tensors*> versions_of(const Run& run) {
  std::map<std::int64_t, const Tensors*> versions;
  for (const auto& [number, tensors] : run.starts) versions[number] = &tensors;
  for (const auto& [number, step] : run.steps) versions[number] = &step.tensors;
  return versions;
}

/// The tensor at a place in the generator's type: as it is, or rounded to it.
const Tensor* in_type(const Tensors& tensors, const std::string& place, const std::string& name, const Tensor& like) {
  const Tensor* const whole = tensors.find(place + "/" + name);
  if (whole && whole->dtype == like.dtype) return whole;
  return tensors.find("cast." + like.dtype + (place == "base" ? ".base/" : "/") + name);
}

struct Found {
  Verdict verdict = Verdict::different;
  std::string relation{}, detail{};
  std::int64_t newest = -1;  ///< the version whose bits it has, if an older one
};

/// True for each range of a tensor that has the sums of another one.
std::vector<bool> same_ranges(const Tensor& a, const Tensor& b, double by = 1e-11) {
  std::vector<bool> same(a.sketch.size() / probe::kSumsOfRange);
  for (std::size_t i = 0; i < same.size() && a.sketch.size() == b.sketch.size(); ++i)
    same[i] = probe::distance(probe::range(a.sketch, i), probe::range(b.sketch, i)) < by;
  return same;
}

/// The rows from the first to the last of the ranges that are `marked`: "rows 32 to 63 of 64".
std::string rows_text(const Tensor& tensor, const std::vector<bool>& marked) {
  const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape.front(), ranges = std::ssize(marked);
  const auto row_at = [&](std::int64_t range) {
    return static_cast<double>(range * rows) / static_cast<double>(ranges);
  };
  const auto first = std::ranges::find(marked, true) - marked.begin();
  const auto end = ranges - (std::find(marked.rbegin(), marked.rend(), true) - marked.rbegin());
  return "rows " + to_text(static_cast<std::int64_t>(row_at(first))) + " to " +
         to_text(static_cast<std::int64_t>(std::ceil(row_at(end))) - 1) + " of " + to_text(rows);
}

/// A tensor that is wrong, over all versions.
struct Wrong {
  Found first{};                                             ///< of the first version in which it is
  std::vector<std::pair<std::int64_t, std::int64_t>> old{};  ///< version, and the older one whose bits it has
  bool otherwise = false;                                    ///< a version has another cause than age

  /// One relation for all versions: the bits of the first version are both stale and never delivered until another
  /// version decides.
  std::string relation(std::int64_t oldest) const {
    if (otherwise || old.empty()) return first.relation;
    const bool never = std::ranges::all_of(old, [&](const auto& one) { return one.second == oldest; });
    if (never)
      return old.size() > 1 ? "never delivered: bits of version " + to_text(oldest)
                            : "not delivered: bits of version " + to_text(oldest);
    std::int64_t least = INT64_MAX, most = 0;
    for (const auto& [version, newest] : old) {
      if (newest != oldest) least = std::min(least, version - newest);
      most = std::max(most, version - newest);
    }
    return "stale by " + to_text(least) + (most > least ? " to " + to_text(most) : "");
  }
};

class Comparison {
 public:
  const std::map<std::int64_t, const Tensors*> trainer, generator;

  const Tensors* trained(std::int64_t version) const {
    return trainer.contains(version) ? trainer.at(version) : nullptr;
  }
  std::int64_t oldest() const { return trainer.empty() ? 0 : trainer.begin()->first; }

  Found judge(std::int64_t version, const std::string& place, const std::string& name, const Tensor& held) const {
    const Tensors& now = *trained(version);
    const Tensor* const exact = now.find(place + "/" + name);
    const Tensor* const same = in_type(now, place, name, held);
    if (!std::isfinite(held.squares)) return {Verdict::failed, "holds values that are not finite"};
    if (const Tensor* const base = base_before(version, name, now))
      return {
          Verdict::different,
          "the trainer's own base has moved under its adapter, as merging and unmerging in " + base->dtype + " does",
          "by " + to_brief_text(probe::distance(base->sketch, now.find("base/" + name)->sketch))};
    if (same && same->digest == held.digest && same->shape == held.shape)
      return {same == exact ? Verdict::exact : Verdict::rounding, same == exact ? "" : "rounded to " + held.dtype};
    if (place == "buffer") return {Verdict::different, "a buffer that differs"};
    if (const std::int64_t newest = old_version(version, place, name, held); newest >= 0)
      return {.relation = "bits of an older version", .newest = newest};
    const Tensor* const base = in_type(now, "base", name, held);
    if (base && base->digest == held.digest) {
      const double moved = exact ? probe::distance(base->sketch, exact->sketch) : 1;
      return {Verdict::different, moved > 0.004 || held.dtype == "F32"
                                      ? "the adapter is not applied"
                                      : "the adapter is not applied, or is lost as it was merged in " + held.dtype};
    }
    if (same && same->set == held.set && held.set != 0) {
      const bool turned = same->rows == held.cols && same->cols == held.rows;
      return {Verdict::different, turned                    ? "transposed"
                                  : same->rows == held.rows ? "its rows are in another order"
                                  : same->cols == held.cols ? "its columns are in another order"
                                                            : "its elements are in another order"};
    }
    if (const std::string other = other_tensor(version, name, held); !other.empty()) {
      const Tensor *const theirs = generator.at(version)->find(place + "/" + other), *const mine = same;
      return {Verdict::different, theirs && mine && theirs->digest == mine->digest
                                      ? "exchanged: " + std::min(name, other) + " with " + std::max(name, other)
                                      : "holds the bytes of " + other};
    }
    if (held.squares == 0) return {Verdict::different, "is zero"};
    if (const std::string parts = siblings(version, place, name, held); !parts.empty())
      return {Verdict::different, parts};
    if (const auto found = partly_old(version, place, name, held)) return *found;
    std::vector<bool> apart = same ? same_ranges(held, *same, 0.02) : std::vector<bool>{};  // further than by rounding
    apart.flip();
    if (const auto count = std::ranges::count(apart, true); count > 0 && 2 * count <= std::ssize(apart))
      return {Verdict::different, "a part of it matches no version", rows_text(held, apart)};
    const Tensor& like = exact ? *exact : same ? *same : held;
    if (like.shape != held.shape && &like != &held) return {Verdict::different, "has another shape"};
    return by_distance(now, name, like, held, base != nullptr);
  }

 private:
  /// The newest version before this one that has its bits; -1 if none has.
  std::int64_t old_version(std::int64_t version, const std::string& place, const std::string& name,
                           const Tensor& held) const {
    std::int64_t newest = -1;
    for (const auto& [number, tensors] : trainer) {
      const Tensor* const then = in_type(*tensors, place, name, held);
      if (number < version && then && then->digest == held.digest) newest = number;
    }
    return newest;
  }

  /// A tensor of which a part is an older version's: whole ranges, or so that what it lacks and what it has of all that
  /// has moved since are orthogonal.
  std::optional<Found> partly_old(std::int64_t version, const std::string& place, const std::string& name,
                                  const Tensor& held) const {
    const Tensor* const now = in_type(*trained(version), place, name, held);
    for (auto it = trainer.rbegin(); now && it != trainer.rend(); ++it) {
      const Tensor* const then = it->first < version ? in_type(*it->second, place, name, held) : nullptr;
      if (!then || then->digest == now->digest || then->sketch.size() != held.sketch.size()) continue;
      const std::string relation = "a part of it has the bits of version " + to_text(it->first);
      const std::vector<bool> fresh = same_ranges(held, *now);
      std::vector<bool> old = same_ranges(held, *then);
      std::size_t both = 0, neither = 0;
      for (std::size_t i = 0; i < old.size(); ++i) {
        both += old[i] && fresh[i], neither += !old[i] && !fresh[i];
        old[i] = old[i] && !fresh[i];
      }
      const auto stale = static_cast<std::size_t>(std::ranges::count(old, true));
      if (stale > 0 && stale + both + neither < old.size() && neither <= 2)
        return Found{.relation = relation, .detail = (neither ? "about " : "") + rows_text(held, old)};
      probe::Sketch moved = now->sketch, lacks = now->sketch, has = held.sketch;
      for (std::size_t i = 0; i < moved.size(); ++i)
        moved[i] -= then->sketch[i], lacks[i] -= held.sketch[i], has[i] -= then->sketch[i];
      const double lacking = std::pow(probe::norm(lacks) / probe::norm(moved), 2);
      const double along = probe::dot(lacks, has) / (probe::norm(lacks) * probe::norm(has));
      if (moved.size() >= 128 && std::fabs(along) < 0.25 && lacking > 0.2 && lacking < 0.8)
        return Found{.relation = relation,
                     .detail = "about " + to_rounded_text(100 * lacking, 2) + " % of what has moved since"};
    }
    return std::nullopt;
  }

  /// The trainer's first base of a weight with an adapter, if it has another one now.
  const Tensor* base_before(std::int64_t version, const std::string& name, const Tensors& now) const {
    const Tensor* const base = now.find("base/" + name);
    const Tensor* const first = base && version > oldest() ? trainer.begin()->second->find("base/" + name) : nullptr;
    return first && first->digest != base->digest ? first : nullptr;
  }

  std::string other_tensor(std::int64_t version, const std::string& name, const Tensor& held) const {
    for (const auto& [other, tensor] : trained(version)->all()) {
      const std::size_t slash = other.find('/') + 1;
      if (tensor.dtype == held.dtype && tensor.digest == held.digest && other.substr(slash) != name &&
          tensor.squares != 0)
        return other.substr(slash);
    }
    return "";
  }

  /// Fused tensors whose parts are exchanged or interleaved: the elements of all parts together are the same.
  std::string siblings(std::int64_t version, const std::string& place, const std::string& name,
                       const Tensor& held) const {
    static const std::vector<std::vector<std::string>> kFused = {{"q_proj", "k_proj", "v_proj"},
                                                                 {"gate_proj", "up_proj"}};
    for (const auto& group : kFused) {
      const auto mine =
          std::ranges::find_if(group, [&](const std::string& one) { return name.find(one) != name.npos; });
      if (mine == group.end()) continue;
      std::uint64_t set_a = 0, set_b = 0, rows_a = 0, rows_b = 0;
      for (const std::string& one : group) {
        std::string other = name;
        other.replace(other.find(*mine), mine->size(), one);
        const Tensor* const theirs = generator.at(version)->find(place + "/" + other);
        const Tensor* const ours = theirs ? in_type(*trained(version), place, other, held) : nullptr;
        if (!ours) return "";
        set_a += ours->set, set_b += theirs->set, rows_a += ours->rows, rows_b += theirs->rows;
      }
      if (set_a != set_b || set_a == 0) return "";
      return std::string(rows_a == rows_b ? "rows" : "elements") + " of " + joined(group) +
             " are exchanged: fused in another order, or interleaved";
    }
    return "";
  }

  Found by_distance(const Tensors& now, const std::string& name, const Tensor& trained, const Tensor& held,
                    bool adapted) const {
    const double apart = probe::distance(trained.sketch, held.sketch);
    const std::string far = "distance " + to_brief_text(apart);
    if (const Tensor* const base = adapted ? now.find("base/" + name) : nullptr) {
      probe::Sketch delta = trained.sketch, got = held.sketch;
      for (std::size_t i = 0; i < delta.size(); ++i) delta[i] -= base->sketch[i], got[i] -= base->sketch[i];
      const probe::Fit fit = probe::fit({delta}, got);
      if (fit.residual < 0.2 && std::fabs(fit.weights[0] - 1) > 0.02)
        return {Verdict::different, "the adapter is merged x " + to_brief_text(fit.weights[0])};
      const double lost = probe::norm(delta) > 0 ? probe::distance(delta, got) : 0;
      if (apart < 0.004 && lost > 0.2)
        return {Verdict::different, "the adapter is merged with loss", to_brief_text(lost) + " of what it adds"};
    }
    struct Type {
      const char *name, *said;
      double least, most;
    };
    // The largest relative distances of a rounding to nearest, by tensor or by block, and half as much again.
    static constexpr Type kTypes[] = {{"I8", "INT8", 0.004, 0.013}, {"int8", "INT8", 0.004, 0.013},
                                      {"F8", "FP8", 0.013, 0.04},   {"float8", "FP8", 0.013, 0.04},
                                      {"U8", "INT4", 0.08, 0.18},   {"I4", "INT4", 0.08, 0.18}};
    for (const Type& type : kTypes) {
      if (held.dtype.starts_with(type.name))
        return apart <= type.most
                   ? Found{Verdict::rounding, std::string("quantised to ") + type.said + ", " + far}
                   : Found{Verdict::different, std::string("further apart than ") + type.said + " explains", far};
    }
    const probe::Fit fit = probe::fit({trained.sketch}, held.sketch);
    if (fit.residual < 0.02 && std::fabs(fit.weights[0] - 1) > 0.02)
      return {Verdict::different, "scaled: " + probe::factor_text(fit.weights[0], {}, 0.01)};
    if (apart < 0.004)
      return {Verdict::different, "not the trainer's bits rounded to " + held.dtype,
              far + ", as small as rounding or as a step of training"};
    for (const Type& type : kTypes) {
      if (apart > type.least && apart < type.most)
        return {Verdict::inconclusive, std::string("may be quantised to ") + type.said, far};
    }
    return {Verdict::different, "matches no version", far};
  }
};

/// The generator's tensors of each version, compared with the trainer's.
class Delivery {
 public:
  Delivery(const Run& trainer, const Run& generator)
      : comparison_{versions_of(trainer), versions_of(generator)}, trainer_run_(trainer), generator_run_(generator) {
    const auto& held = comparison_.generator;
    for (const auto& [version, tensors] : held) add(version, *tensors);
    for (const auto& [version, tensors] : comparison_.trainer) {
      const std::string thing = "version " + to_text(version);
      if (!held.empty() && version <= held.rbegin()->first) continue;  // between the generator's: not a sync
      left_.add(thing), alone_.push_back(thing + " is only in the trainer's");
    }
  }

  Answer answer() const {
    compare::Ledger ledger(left_, right_);
    for (const auto& [thing, verdict] : entries_) ledger.compared(thing, verdict);
    std::vector<std::string> ranks;
    const auto of_ranks = [](const std::string& fault) { return fault.find("differs between rank") != fault.npos; };
    for (const Run* const run : {&trainer_run_, &generator_run_})
      std::ranges::copy_if(run->faults, std::back_inserter(ranks), of_ranks);
    if (!ranks.empty()) ledger.at_least(Verdict::failed);
    Answer made;
    made.verdict = ledger.settle();
    const auto line = [&](const std::string& key, const std::string& text) {
      if (!text.empty()) made.lines.emplace_back(key, text);
    };
    line("verdict", std::string(compare::name(made.verdict)));
    if (!ranks.empty()) line("reason", "ranks hold different bytes: " + some_of(ranks, 3, "; "));
    if (!wrong_.empty()) add_wrong(made);
    line("not decided", some_of(open_, 2, "; "));
    line("not compared", some_of(alone_, 3, "; "));
    line("compared", counted(entries_.size(), "tensor") + "; " + to_text(equal_) + " equal in bits, " +
                         to_text(std::ssize(close_)) + " rounded");
    line("rounded", some_of(close_, 2, "; "));
    line("delivered", by_version_);
    return made;
  }

 private:
  void add(std::int64_t version, const Tensors& tensors) {
    const Tensors* const now = comparison_.trained(version);
    const std::string at = "version " + to_text(version) + ": ";
    if (!now) {
      alone_.push_back("version " + to_text(version) + " is only in the generator's");
      right_.add(at);
      return;
    }
    std::int64_t delivered = 0, here = 0;
    for (const auto& [place_name, held] : tensors.all()) {
      const std::size_t slash = place_name.find('/');
      const std::string place = place_name.substr(0, slash), name = place_name.substr(slash + 1);
      if (place != "param" && place != "buffer") continue;
      if (!now->find(place_name)) {
        if (place == "param") right_.add(at + name), alone_.push_back(at + name + " is only in the generator's");
        continue;
      }
      left_.add(at + name), right_.add(at + name);
      const Found found = comparison_.judge(version, place, name, held);
      entries_.emplace_back(at + name, found.verdict);
      ++here, delivered += found.verdict <= Verdict::rounding;
      note(version, name, at, found);
    }
    for (const auto& [place_name, tensor] : now->all()) {
      if (!place_name.starts_with("param/") || tensors.find(place_name)) continue;
      const std::string name = place_name.substr(6);
      const bool tied = std::ranges::any_of(trainer_run_.ties, [&](const auto& tie) {
        return tie.first == name || std::ranges::find(tie.second, name) != tie.second.end();
      });
      if (!tied) left_.add(at + name), alone_.push_back(at + name + " is not in the generator's");
    }
    by_version_ +=
        (by_version_.empty() ? "" : ", ") + to_text(version) + ": " + to_text(delivered) + " of " + to_text(here);
  }

  void note(std::int64_t version, const std::string& name, const std::string& at, const Found& found) {
    equal_ += found.verdict == Verdict::exact;
    if (found.verdict == Verdict::inconclusive) open_.push_back(name + " " + found.relation + ", " + found.detail);
    if (found.verdict == Verdict::rounding) close_.push_back(name + " " + found.relation);
    if (found.verdict <= Verdict::inconclusive) return;
    if (first_.empty()) first_ = at + name;
    Wrong& one = wrong_[name];
    if (one.first.relation.empty()) one.first = found;
    if (found.newest >= 0)
      one.old.emplace_back(version, found.newest);
    else
      one.otherwise = true;
  }

  /// The headline is the relation that most tensors have.
  void add_wrong(Answer& made) const {
    std::map<std::string, std::vector<std::string>> relations;
    std::vector<std::string> order;
    for (const auto& [name, one] : wrong_) {
      const std::string relation = one.relation(comparison_.oldest());
      if (!relations.contains(relation)) order.push_back(relation);
      relations[relation].push_back(name + (one.first.detail.empty() ? "" : " (" + one.first.detail + ")"));
    }
    std::ranges::stable_sort(order, std::greater{}, [&](const std::string& one) { return relations[one].size(); });
    made.lines.emplace_back("reason", "the generator does not hold the trainer's weights");
    made.lines.emplace_back("relation", order.front() + ": " + some_of(relations[order.front()], 3));
    made.lines.emplace_back("where", first_);
    for (std::size_t i = 1; i < std::min<std::size_t>(order.size(), 6); ++i)
      made.lines.emplace_back("also", order[i] + ": " + some_of(relations[order[i]], 3));
  }

  Comparison comparison_;
  const Run &trainer_run_, &generator_run_;
  compare::Holdings left_, right_;
  std::map<std::string, Wrong> wrong_;  // by tensor
  std::vector<std::string> alone_, close_, open_;
  std::string first_, by_version_;
  std::int64_t equal_ = 0;
  std::vector<std::pair<std::string, Verdict>> entries_;
};

}  // namespace

bool of_generator(const std::string& folder) { return probefile::head_of(folder).layout == "generator"; }

Answer compare_weights(const std::string& trainer, const std::string& generator) {
  const Run ours = probefile::read(trainer), theirs = probefile::read(generator);
  return Delivery(ours, theirs).answer();
}

}  // namespace zs::rollout
