// SPDX-License-Identifier: Apache-2.0
#include "probe/account.hpp"

#include <algorithm>
#include <set>

#include "base/number.hpp"
#include "probe/matching.hpp"
#include "probe/options.hpp"
#include "probe/scene.hpp"

namespace zs::probe {

using compare::Holder;
using compare::Verdict;
namespace rule = probefile::rule;

void Account::add(Holder holder, const std::string& thing) { (holder == Holder::a ? held_a_ : held_b_).add(thing); }

void Account::enter(const std::string& thing, const Outcome& outcome) {
  if (outcome.excused) {
    for (const Holder side : {Holder::a, Holder::b}) excused_.emplace_back(side, thing);
    return;
  }
  compared_.emplace_back(thing, outcome.verdict);
  if (outcome.verdict > Verdict::rounding) unsound_ = std::max(unsound_, at_);
  const std::string text = thing.substr(0, thing.find(": ") + 2) + outcome.text;
  if (outcome.verdict == Verdict::rounding && !outcome.text.empty()) rounded_.push_back(text);
  if (outcome.verdict == Verdict::different) {
    different_.push_back(text);
    if (at_ < earliest_.step) earliest_ = {at_, text};
  }
  if (outcome.verdict == Verdict::failed) wild_.push_back(text);
  if (outcome.verdict == Verdict::inconclusive && !outcome.text.empty()) open_.push_back(text);
}

void Account::alone(Holder holder, const std::string& thing, const char* excuse) {
  if (excuse) return void(excused_.emplace_back(holder, thing));
  alone_.push_back(thing + " is only in " + (holder == Holder::a ? "A" : "B"));
  unsound_ = std::max(unsound_, at_);
}

Account::Account(const Run& a, const Run& b, const Diagnosis& found, const compare::Tolerance& tolerance,
                 std::int64_t after) {
  Scene scene{*this, a, b, found, tolerance, "", nullptr, nullptr, probe::alike(a, b)};
  scene.in_one = frozen_in_one(a, b);
  const auto never = [](const std::string&) -> const char* { return nullptr; };
  const auto layout = [&](const std::string&) { return scene.alike ? nullptr : kLayout; };

  // ---- the first lines
  const auto enter_head = [&](rule::Names, const char* what) {
    std::map<std::string, std::string> mine, theirs;
    const auto list = [&](const Run& run, std::map<std::string, std::string>& into) {
      if (std::string(what) == "frozen") {
        for (const std::string& name : run.frozen) into["frozen " + name] = "";
      } else if (std::string(what) == "loose") {
        for (const std::string& name : run.loose) into[name + ", which no optimizer moves"] = "";
      } else {
        for (const auto& [name, others] : run.ties) {
          for (const std::string& other : others) into["tie of " + name + " with " + other] = "";
        }
      }
    };
    list(a, mine), list(b, theirs);
    scene.each(
        mine, theirs, [](const auto&, const auto&, const auto&) { return Outcome{}; }, layout);
  };
  struct Told {  // rules whose fields the reader checks or the answer tells
    void operator()(rule::Row, const char*) const {}
    void operator()(rule::Rank, const char*) const {}
    void operator()(rule::Copy, const char*) const {}
    void operator()(rule::Version, const char*) const {}
    void operator()(rule::Environment, const char*) const {}
    void operator()(rule::Layout, const char*) const {}
    void operator()(rule::Unseen, const char*) const {}
  };
  struct Head : Told, decltype(enter_head) {
    using Told::operator();
    using decltype(enter_head)::operator();
  };
  const Head head{Told{}, enter_head};
  probefile::each(probefile::kHead, [&](const auto& field) { head(field.rule, field.name); });

  // ---- the starts
  struct Starts {
    void operator()(rule::Row) const {}
    void operator()(rule::Counted) const {
      const auto mine = a->counted.find(number), theirs = b->counted.find(number);
      std::map<std::string, std::string> x, y;
      if (mine != a->counted.end()) x["steps counted"] = to_text(mine->second);
      if (theirs != b->counted.end()) y["steps counted"] = to_text(theirs->second);
      scene->each(
          x, y, [](const auto&, const std::string& p, const std::string& q) { return equal(p, q); },
          [&](const auto&) { return derived ? kLayout : scene->layout(); });
    }
    void operator()(rule::Tensors) const {
      const auto kept = [](const Tensors& tensors) {
        std::map<std::string, const Tensor*> found;
        for (const auto& [name, tensor] : tensors.all()) {
          if (name.starts_with("param/") || name.starts_with("state.") || name.starts_with("buffer/"))
            found.emplace(name, &tensor);
        }
        return found;
      };
      scene->tensors(kept(*left), kept(*right), [&](const std::string& name) -> const char* {
        if (derived && name.starts_with("buffer/")) return kPartial;  // a step has those that have changed
        if (scene->frozen_elsewhere(name)) return kLayout;
        return scene->alike || name.starts_with("param/") ? nullptr : kLayout;
      });
    }
    Scene* scene;
    const Run *a, *b;
    std::int64_t number;
    const Tensors *left, *right;
    bool derived;  ///< a side's is what its last step left
  };
  std::set<std::int64_t> begun;
  for (const Run* run : {&a, &b}) {
    for (const auto& [number, tensors] : run->starts) begun.insert(number);
  }
  for (const std::int64_t number : begun) {
    if (number <= after && after >= 0) continue;
    const auto begin_of = [&](const Run& run) -> std::pair<const Tensors*, bool> {
      if (const auto start = run.starts.find(number); start != run.starts.end()) return {&start->second, false};
      const auto step = run.steps.find(number);
      return {step == run.steps.end() || step->second.partial() ? nullptr : &step->second.tensors, true};
    };
    const auto [left, from_step_a] = begin_of(a);
    const auto [right, from_step_b] = begin_of(b);
    at_ = number;
    scene.prefix = start_thing(number, "");
    scene.partial = false;
    if (!left || !right) {
      const Holder holder = left ? Holder::a : Holder::b;
      add(holder, scene.prefix);
      alone(holder, scene.prefix, (left ? b : a).leaves_out(number) ? kStride : nullptr);
      continue;
    }
    const Starts starts{&scene, &a, &b, number, left, right, from_step_a || from_step_b};
    probefile::each(probefile::kStart, [&](const auto& field) { starts(field.rule); });
  }

  // ---- the steps
  std::set<std::int64_t> steps;
  for (const auto& [number, step] : a.steps) steps.insert(number);
  for (const auto& [number, step] : b.steps) steps.insert(number);
  for (auto at = steps.upper_bound(after); at != steps.end(); ++at) {
    const auto left = a.steps.find(*at), right = b.steps.find(*at);
    at_ = *at;
    if (left == a.steps.end() || right == b.steps.end()) {
      const bool in_a = left != a.steps.end();
      const std::string name = thing(*at, "the step");
      add(in_a ? Holder::a : Holder::b, name);
      alone(in_a ? Holder::a : Holder::b, name, (in_a ? b : a).leaves_out(*at) ? kStride : nullptr);
      continue;
    }
    scene.prefix = thing(*at, "");
    scene.left = &left->second, scene.right = &right->second;
    scene.partial = scene.left->partial() || scene.right->partial();
    scene.resumed = *at > 1 && a.starts.contains(*at - 1) != b.starts.contains(*at - 1);
    scene.cut = cut_alike(*scene.left, *scene.right);
    scene.by_samples = same_micro_batches(*scene.left, *scene.right);
    if (scene.shows_draws()) shows_draws_.insert(*at);
    probefile::each(probefile::kStep, [&](const auto& field) { scene.enter(field.rule); });
  }
  scene.samples();
  scene.generators();

  // ---- the end
  struct Ends {
    void operator()(rule::End) const {}  // which the reader checks; the last step is compared below
    void operator()(rule::Rank) const {}
    void operator()(rule::Unseen) const {}
  };
  probefile::each(probefile::kEnd, [](const auto& field) { Ends()(field.rule); });
  if (after >= 0) return;
  scene.prefix = "end: ";
  std::map<std::string, std::string> mine, theirs;
  if (a.ended()) mine["steps made"] = to_text(a.end);
  if (b.ended()) theirs["steps made"] = to_text(b.end);
  scene.each(
      mine, theirs,
      [&](const std::string&, const std::string& x, const std::string& y) {
        return unjudged(x == y, "A made " + x + " steps, B " + y);
      },
      never);
}

std::string Account::drawn_otherwise(std::int64_t step) const {
  const auto begins = [&](const auto& one) { return !one.second.apart.empty() && one.second.apart.front() == step; };
  const auto first = std::ranges::find_if(states_, begins);
  return first == states_.end() ? "" : "; " + first->first + " is in another state";
}

compare::Ledger Account::ledger() const {
  compare::Ledger made(held_a_, held_b_);
  for (const auto& [thing, verdict] : compared_) made.compared(thing, verdict);
  for (const auto& [holder, thing] : excused_) made.excuse(holder, thing);
  return made;
}

}  // namespace zs::probe
