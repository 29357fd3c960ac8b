// SPDX-License-Identifier: Apache-2.0
#include "probe/checks.hpp"

#include <algorithm>

#include "base/number.hpp"
#include "base/words.hpp"
#include "compare/ledger.hpp"
#include "probe/judges.hpp"

namespace zs::probe {
namespace {

constexpr std::size_t kMostShown = 5;

template <class J>
std::unique_ptr<Judge> make(const Run& run, Tally& tally) {
  return std::make_unique<J>(run, tally);
}

using OfStart = void (*)(const Run&, Tally&, std::int64_t, const Tensors&);
using OfStep = void (*)(const Run&, Tally&, const Moment&);

/// Judges each step by itself.
template <OfStep kStep, OfStart kStart = nullptr>
std::unique_ptr<Judge> each(const Run& run, Tally& tally) {
  struct Each : Judge {
    using Judge::Judge;
    void start(std::int64_t number, const Tensors& tensors) override {
      if constexpr (kStart != nullptr) kStart(run_, tally_, number, tensors);
    }
    void step(const Moment& now) override { kStep(run_, tally_, now); }
  };
  return make<Each>(run, tally);
}

/// A breach with the others of its step and relation.
std::string text_of(const Breach& breach, std::size_t more) {
  return (breach.step > 0 ? "step " + to_text(breach.step) + ": " : "") + words_of(breach.place) +
         (more > 0 ? " and " + to_text(static_cast<std::int64_t>(more)) + " more" : "") +
         (breach.place.empty() ? "" : ": ") + breach.relation;
}

std::vector<std::string> texts_of(const std::vector<Breach>& breaches) {
  std::vector<std::pair<const Breach*, std::size_t>> distinct;
  for (const Breach& breach : breaches) {
    const auto known = std::ranges::find_if(distinct, [&](const auto& one) {
      return one.first->step == breach.step && one.first->relation == breach.relation;
    });
    if (known == distinct.end())
      distinct.emplace_back(&breach, 0);
    else
      ++known->second;
  }
  std::vector<std::string> texts;
  for (const auto& [breach, more] : distinct) texts.push_back(text_of(*breach, more));
  return texts;
}

}  // namespace

const std::vector<Check>& checks() {
  static const std::vector<Check> kChecks = {
      {"finite", "each number is finite", "losses, norms and tensors", each<judge_finite, judge_finite_of_start>},
      {"samples", "no sample is read twice in a step, and none again before an epoch ends",
       "the module's own forward: attach to the model whose call has the batch", make<SampleJudge>},
      {"micro-batches", "a step has as many micro-batches as its accumulation says", "", each<judge_micro_batches>},
      {"replicas", "ranks that hold the same part hold the same bits", "",
       each<judge_replicas, judge_replicas_of_start>},
      {"gradient", "the gradient is the mean of all micro-batches' gradients, times the factor of clipping",
       "gradients of micro-batches", each<judge_gradients>},
      {"norm", "the norm and its bound of clipping are those of the gradients",
       "the norm: clip by torch.nn.utils.clip_grad_norm_ or by the framework", each<judge_norm>},
      {"counter", "the optimizer's counter moves by one, from 0, for all parameters alike", "", make<CounterJudge>},
      {"rate", "each group's rate moves as its schedule says", "a schedule of torch, attached before the first step",
       make<RateJudge>},
      {"moments", "the optimizer's state follows from the gradient and the state before", "consecutive steps",
       each<judge_moments>},
      {"update", "each parameter moves by what gradient, state, counter and rate say", "consecutive steps",
       each<judge_updates>},
      {"masters", "what forward computes with is the rounded copy that the optimizer moves", "", each<judge_masters>},
      {"found", "forward computes with what the last update left", "consecutive steps", each<judge_found>},
      {"moves", "all that is trained moves and has a gradient, and what is frozen does not", "two steps",
       make<MotionJudge>},
      {"loss", "the loss of a step is made of its micro-batches' losses by one rule",
       "recorder.loss(value) at each step", make<LossJudge>},
  };
  return kChecks;
}

void Tally::breach(Breach found) {
  ++broken_;
  if (breaches_.size() < 64) breaches_.push_back(std::move(found));
}

Checking::Checking(const Run& run) : run_(run) {
  for (const Check& row : checks()) judges_.emplace_back(&row, row.judge(run, tallies_[row.name]));
}

bool Checking::apart() const {
  return std::any_of(tallies_.begin(), tallies_.end(), [](const auto& known) { return known.second.broken() > 0; });
}

void Checking::grow() {
  for (const auto& [number, tensors] : run_.starts) {
    if (!started_.insert(number).second) continue;
    for (auto& [row, judge] : judges_) judge->start(number, tensors);
  }
  for (auto at = run_.steps.upper_bound(last_); at != run_.steps.end(); ++at) {
    last_ = at->first;
    const auto before = run_.steps.find(at->first - 1);
    const auto start = run_.starts.find(at->first - 1);
    const bool whole = before != run_.steps.end() && !before->second.partial();
    const Tensors* const from = start != run_.starts.end() ? &start->second : whole ? &before->second.tensors : nullptr;
    const Moment moment{at->first, at->second, whole && start == run_.starts.end() ? &before->second : nullptr, from};
    if (at->second.partial()) continue;
    ++steps_;
    for (auto& [row, judge] : judges_) judge->step(moment);
  }
}

Answer Checking::answer(bool ended) {
  if (ended) {
    for (auto& [row, judge] : judges_) judge->end();
  }
  Answer made;
  made.steps = steps_, made.ended = ended, made.apart = apart();
  const Breach* first = nullptr;
  const Check* check = nullptr;
  compare::Holdings held;
  for (const Check& row : checks()) {
    const Tally& tally = tallies_.at(row.name);
    if (tally.held() + tally.broken() > 0) held.add(row.name);
    for (const Breach& breach : tally.breaches()) {
      if (!first || breach.step < first->step) first = &breach, check = &row;
    }
  }
  compare::Ledger ledger(held, held);
  for (const Check& row : checks()) {
    const Tally& tally = tallies_.at(row.name);
    if (tally.held() + tally.broken() > 0)
      ledger.compared(row.name, tally.broken() > 0 ? compare::Verdict::different : compare::Verdict::exact);
  }
  const std::vector<std::string> told = run_.faults;
  if (!told.empty() || !run_.unseen.empty() || held.counts().empty()) ledger.at_least(compare::Verdict::inconclusive);
  for (const auto& [name, tally] : tallies_) {
    if (!tally.missing().empty()) ledger.at_least(compare::Verdict::inconclusive);
  }
  if (tallies_.at("update").held() == 0) ledger.at_least(compare::Verdict::inconclusive);
  made.verdict = ledger.settle();
  const auto add = [&](const std::string& key, const std::string& value) { made.lines.emplace_back(key, value); };
  add("verdict", std::string(compare::consistency(made.verdict)));
  if (first) {
    std::vector<Breach> alike;
    for (const Breach& breach : tallies_.at(check->name).breaches()) {
      if (breach.step == first->step && breach.relation == first->relation) alike.push_back(breach);
    }
    add("headline", texts_of(alike).front());
    if (first->step > 0) add("step", to_text(first->step));
    add("check", std::string(check->name) + ": expected: " + check->shows);
    if (!first->place.empty()) add("place", first->place);
    add("relation", first->relation);
    add("distance", to_rounded_text(first->distance, 3));
    add("bound", to_rounded_text(first->bound, 3));
  }
  if (!told.empty()) add("failure", some_of(told, kMostShown, "; ", "; and "));
  std::string checked;
  for (const Check& row : checks()) {
    const Tally& tally = tallies_.at(row.name);
    if (tally.broken() > 0) {
      const std::vector<std::string> texts = texts_of(tally.breaches());
      add(std::string("broken ") + row.name, to_text(tally.broken()) + " of " + to_text(tally.held() + tally.broken()) +
                                                 ": " + some_of(texts, kMostShown, "; ", "; and "));
    } else if (tally.held() > 0) {
      checked += (checked.empty() ? "" : ", ") + std::string(row.name) + " " + to_text(tally.held());
    }
  }
  if (!checked.empty()) add("holds", checked);
  std::vector<std::string> open;
  for (const Check& row : checks()) {
    const Tally& tally = tallies_.at(row.name);
    for (const std::string& text : tally.missing()) open.push_back(std::string(row.name) + ": " + text);
    if (tally.held() + tally.broken() == 0 && tally.missing().empty() && *row.record)
      open.push_back(std::string(row.name) + ": needs " + row.record);
  }
  if (!open.empty()) add("not checked", some_of(open, 12, "; ", "; and "));
  for (const Check& row : checks()) {
    for (const std::string& text : tallies_.at(row.name).notes()) add("note " + std::string(row.name), text);
  }
  if (!run_.unseen.empty()) add("not recorded", some_of(run_.unseen, kMostShown, "; ", "; and "));
  add("steps_checked", to_text(steps_));
  add("layout", called(run_));
  return made;
}

std::string headline_of(const Run& run) {
  Checking checking(run);
  checking.grow();
  const Answer answer = checking.answer(true);
  const auto found = std::ranges::find(answer.lines, "headline", [](const auto& line) { return line.first; });
  return found == answer.lines.end() ? "" : found->second;
}

Answer check(const std::string& folder) {
  const Run run = probefile::read(folder);
  Checking checking(run);
  checking.grow();
  return checking.answer(true);
}

Live::Seen LiveChecks::grow() {
  const Run& run = growing_.read();
  if (!checking_) checking_ = std::make_unique<Checking>(run);
  checking_->grow();
  ended_ = run.ended();
  return {checking_->steps(), checking_->apart(), ended_};
}

Answer LiveChecks::answer() {
  if (ended_) growing_.settle();
  return checking_->answer(ended_);
}

}  // namespace zs::probe
