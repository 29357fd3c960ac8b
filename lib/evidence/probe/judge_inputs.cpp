// SPDX-License-Identifier: Apache-2.0
// Checks of the inputs of a step: numbers, samples, micro-batches, the optimizer's counter, rates, losses.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/number.hpp"
#include "base/words.hpp"
#include "probe/judges.hpp"
#include "probe/options.hpp"

namespace zs::probe {
namespace {

/// A rank for each data-parallel rank: ranks that share one read the same samples.
std::map<int, int> readers(const Step& step) {
  std::map<int, int> first;
  for (const auto& [rank, row] : step.ranks) {
    const auto by = step.by.find(rank);
    first.try_emplace(by == step.by.end() ? rank : by->second, rank);
  }
  return first;
}

bool is_zero(const Tensors& tensors, const std::string& parameter) {
  bool any = false;
  for (const auto& [name, tensor] : tensors.all()) {
    if (!name.starts_with("state.") || parameter_of(name) != parameter) continue;
    if (tensor.squares != 0) return false;
    any = true;
  }
  return any;
}

}  // namespace

void judge_finite_of_start(const Run&, Tally& tally, std::int64_t number, const Tensors& tensors) {
  for (const auto& [name, tensor] : tensors.all()) {
    if (std::isfinite(tensor.squares))
      tally.holds();
    else
      tally.breach({number, name, "is not finite"});
  }
}

void judge_finite(const Run& run, Tally& tally, const Moment& now) {
  for (const auto& [rank, row] : now.step.ranks) {
    const auto judge = [&](const std::string& what, double value) {
      if (std::isfinite(value))
        tally.holds();
      else
        tally.breach({now.number, what + " of rank " + std::to_string(rank), "is " + to_text(value)});
    };
    if (row.loss) judge("loss", *row.loss);
    const bool dropped = row.scalars.contains("dropped");  // a loop may leave out a micro-batch for that
    for (const probefile::Real& loss : row.losses)
      if (!dropped) judge("loss of a micro-batch", loss);
    for (const auto& [name, value] : row.scalars) {
      if (name != "clip" || !std::isinf(value.value)) judge(name, value);  // a bound that clips nothing
    }
  }
  judge_finite_of_start(run, tally, now.number, now.step.tensors);
}

/// A policy draws the same completion twice, in a step and in later ones.
void SampleJudge::repeated(const Breach& found) {
  if (run_.drawn)
    tally_.note("a generator drew the samples, and may draw one again: samples that are the same are not checked");
  else
    tally_.breach(found);
}

void SampleJudge::step(const Moment& now) {
  std::map<std::string, std::pair<int, std::size_t>> here;
  std::map<std::vector<std::string>, std::pair<int, std::size_t>> whole;
  std::set<std::string> samples;
  std::size_t count = 0, old = 0, micros = 0;
  for (const auto& [key, local] : now.step.locals) micros = std::max(micros, static_cast<std::size_t>(key.second) + 1);
  for (const auto& [share, rank] : readers(now.step)) {
    const auto& batch = now.step.ranks.at(rank).batch;
    // SAM reads a micro-batch again; a loss may take two calls, and a call may be for another model's loss.
    const bool calls = micros > 0 && batch.size() > micros, again = calls || now.step.scalars.contains("dropped");
    if (calls)
      tally_.note("the model is called more often than micro-batches have gradients: a call may repeat samples");
    for (std::size_t micro = 0; micro < batch.size(); ++micro) {
      if (batch[micro].empty()) continue;  // not seen: PyTorch 1.13 shows no keyword argument of a model
      const std::string mine = "micro-batch " + std::to_string(micro + 1) + " of rank " + std::to_string(rank);
      const auto [known, added] = whole.try_emplace(batch[micro], rank, micro);
      if (!added) {
        if (again && known->second.first == rank) continue;
        repeated({now.number, "batch",
                  mine + " has the samples of micro-batch " + std::to_string(known->second.second + 1) + " of rank " +
                      std::to_string(known->second.first)});
        continue;
      }
      std::set<std::string> told;
      const std::set<std::string> distinct(batch[micro].begin(), batch[micro].end());
      // Reinforcement learning repeats each prompt equally often.
      const bool grouped = distinct.size() * 2 <= batch[micro].size() && batch[micro].size() % distinct.size() == 0;
      for (const std::string& sample : batch[micro]) {
        ++count;
        old += seen_.contains(sample);
        samples.insert(sample);
        const auto [first, fresh] = here.try_emplace(sample, rank, micro);
        if (!fresh && !grouped && !(again && first->second.first == rank) && told.insert(sample).second)
          repeated({now.number, "batch",
                    "a sample of " + mine + " is also in micro-batch " + std::to_string(first->second.second + 1) +
                        " of rank " + std::to_string(first->second.first)});
      }
      tally_.holds();
    }
  }
  if (samples.empty()) return;
  if (samples == last_)
    ++runs_.back();
  else
    runs_.push_back(1), last_ = samples;
  if (old == 0) {  // new samples only: no epoch ended since a step that repeated an earlier one
    for (const Read& read : steps_) {
      if (read.like > 0)
        again_.push_back({read.step, "batch",
                          "has the samples of step " + to_text(read.like) + " again, and step " + to_text(now.number) +
                              " has new ones: no epoch ends between them"});
    }
    steps_.clear();
  }
  const auto like = batches_.find(samples);
  if (like != batches_.end() && (steps_.empty() || steps_.back().like == 0))
    steps_.push_back({now.number, count, old, like->second});
  batches_.emplace(samples, now.number);
  for (const std::string& sample : samples) seen_[sample] = now.number;
  settle(false);
}

/// Reinforcement learning may make several steps with each batch.
void SampleJudge::settle(bool ended) {
  const std::size_t known = runs_.size() - (ended || runs_.empty() ? 0 : 1);
  if (again_.empty() || (known < 2 && !ended)) return;
  if (known >= 2 && runs_[0] > 1 &&
      std::all_of(runs_.begin(), runs_.begin() + static_cast<std::ptrdiff_t>(known),
                  [&](std::size_t run) { return run == runs_[0]; }))
    tally_.note("each batch is read in " + std::to_string(runs_[0]) + " steps that follow one another");
  else
    std::ranges::for_each(again_, [&](const Breach& one) { repeated(one); });
  again_.clear();
}

void SampleJudge::end() { steps_.clear(), settle(true); }

void judge_micro_batches(const Run&, Tally& tally, const Moment& now) {
  const auto told = now.step.scalars.find("accumulation");
  if (told == now.step.scalars.end()) return;
  std::map<int, std::pair<int, std::string>>
      counts;  // of a data-parallel rank: micro-batches, and the ranks that it is
  for (const auto& [key, local] : now.step.locals) {
    auto& [count, ranks] = counts[key.first];
    count = std::max(count, key.second + 1);
    if (ranks.empty()) ranks = holders_text(local.tensors.all().front().second);
  }
  if (counts.empty()) return tally.lacks("gradients of micro-batches were not recorded");
  for (const auto& [by, counted] : counts) {
    const auto& [count, ranks] = counted;
    if (count == told->second)
      tally.holds();
    else if (std::fmod(count, told->second) == 0)
      tally.note("the training makes " + to_text(static_cast<std::int64_t>(count)) +
                 " micro-batches of a step for an accumulation of " + to_text(told->second) +
                 ": the gradient shows whether all count");
    else
      tally.breach({now.number, "micro-batches of " + ranks,
                    to_text(static_cast<std::int64_t>(count)) + " for an accumulation of " + to_text(told->second) +
                        ": " + factor_text(count / told->second, {}, 1e-9) + " of what a step should have"});
  }
}

void CounterJudge::start(std::int64_t number, const Tensors& tensors) {
  const auto counted = run_.counted.find(number);
  if (counted == run_.counted.end() || counted->second <= 0) return;
  std::vector<std::string> still;
  std::size_t total = 0;
  for (const auto& [name, tensor] : tensors.all()) {
    if (!name.starts_with("param/")) continue;
    ++total;
    if (is_zero(tensors, parameter_of(name))) still.push_back(parameter_of(name));
  }
  if (still.empty() || still.size() < total) return;
  told_ = true;
  tally_.breach({number + 1, "counter",
                 "the optimizer counts " + to_text(counted->second) + (counted->second == 1 ? " step" : " steps") +
                     " before its first update, and its state is zero: no update was made; expected 0",
                 static_cast<double>(counted->second)});
}

/// An update without a gradient also moves the counter: Adam's next update has the bias correction of a later
/// step. Reading an optimizer's state before its first step makes one, in some libraries.
void CounterJudge::empty_update(const Moment& now) {
  const bool forward = std::ranges::any_of(
      now.step.ranks, [](const auto& rank) { return !rank.second.batch.empty() || !rank.second.losses.empty(); });
  if (forward && without_) tally_.breach(*std::exchange(without_, std::nullopt));
  bool any = false, zero = true;
  for (const auto& [name, tensor] : now.step.tensors.all()) {
    if (name.starts_with("grad/") || name.starts_with("state.")) zero &= tensor.squares == 0;
    any |= name.starts_with("grad/");
  }
  if (forward || !now.step.locals.empty() || !zero || counters(now.step).empty()) return;
  std::string text = std::string("the optimizer made a step without a backward: ") +
                     (any ? "all gradients and all state are zero" : "no model was called") + ", and its counter moves";
  const auto& group = now.step.groups.front();
  if (const auto betas = group.options.find("betas");
      betas != group.options.end() && betas->second.numbers.size() == 2) {
    const double a = betas->second.numbers[0], b = betas->second.numbers[1];
    text += "; the first update is then x " +
            to_rounded_text((1 - a) / (1 - a * a) * std::sqrt((1 - b * b) / (1 - b)), 4) + " of the right one";
  }
  const Breach found{now.number, "counter", text, 1};
  if (any)
    tally_.breach(found);
  else if (last_.empty())
    without_ = found;  // if a later step sees one
}

void CounterJudge::step(const Moment& now) {
  empty_update(now);
  const auto begun =
      std::ranges::find_if(run_.starts, [&](const auto& start) { return start.first == now.number - 1; });
  if (begun != run_.starts.end()) last_.clear();
  const auto counted = run_.counted.find(now.number - 1);
  for (const auto& [name, text] : counters(now.step)) {
    const auto value = parse_real(text);
    const std::string place = "counter of " + name;
    if (!value) {
      tally_.breach({now.number, place, "ranks count differently: " + text});
      continue;
    }
    const auto last = last_.find(name);
    double expected = *value, least = expected;
    std::string from;
    if (last != last_.end()) {
      // A step without a gradient of the parameter need not count.
      const bool counts = now.step.tensors.find("grad/" + name) || now.step.tensors.find("direction/" + name);
      expected = last->second.second + static_cast<double>(now.number - last->second.first);
      least = last->second.second + (counts ? 1 : 0);
      from = "counted " + to_text(last->second.second) + " after step " + to_text(last->second.first);
    } else if (begun != run_.starts.end() && now.from &&
               (is_zero(*now.from, name) || std::ranges::none_of(now.from->all(), [&](const auto& known) {
                  return known.first.starts_with("state.") && parameter_of(known.first) == name;
                }))) {
      expected = least = told_ && counted != run_.counted.end() ? static_cast<double>(counted->second) + 1 : 1;
      from = "no update was made before";
    }
    if (*value == expected || (*value == least && last->second.first == now.number - 1))
      tally_.holds();
    else if (*value >= least && *value < expected)
      tally_.lacks(
          "a counter moved by less than the steps since the last recorded one: its parameter may have had no gradient "
          "in some of them");
    else
      tally_.breach({now.number, place, "is " + to_text(*value) + ", expected " + to_text(expected) + " (" + from + ")",
                     std::fabs(*value - expected)});
    last_[name] = {now.number, *value};
  }
}

void RateJudge::step(const Moment& now) {
  schedules(now);
  // A schedule whose formula is known says each group's rate. Another one multiplies the first
  // rates of all groups of an optimizer by the same factor.
  if (std::ranges::any_of(now.step.ranks, [](const auto& rank) {
        return std::ranges::any_of(rank.second.schedules, [](const auto& one) { return one.formula.has_value(); });
      }))
    return;
  std::map<std::string, double> factor;
  for (const Group& group : now.step.groups) {
    const double rate = number_of(group, "lr", kNan), begun = number_of(group, "initial_lr", kNan);
    if (std::isnan(rate) || !(begun > 0)) continue;
    const auto [known, added] = factor.try_emplace(group.optimizer, rate / begun);
    if (added || close_to(known->second, rate / begun, 1e-6))
      tally_.holds();
    else  // a floor or a ceiling that groups share, or a fault
      tally_.lacks("the rates of the groups are other multiples of those they began with, and no formula is known");
  }
}

void RateJudge::schedules(const Moment& now) {
  for (const auto& [rank, row] : now.step.ranks) {
    for (std::size_t i = 0; i < row.schedules.size(); ++i) {
      const probefile::Schedule& schedule = row.schedules[i];
      const std::string name = schedule.name + " of rank " + std::to_string(rank);
      const auto [known, first] = moves_.try_emplace({rank, i}, Moves{now.number, schedule.count});
      Moves& seen = known->second;
      const std::int64_t steps = now.number - seen.step, moved = schedule.count - seen.count;
      const bool by_rank = moved == steps * run_.ranks && schedule.name.ends_with(" of Accelerate");
      if (by_rank && !first)
        tally_.note("by contract: Accelerate moves a schedule once for each rank, " + std::to_string(run_.ranks) +
                    " times a step, unless it splits batches");
      const bool whole = moved == steps || by_rank;
      // One that does not move in each step moves where an epoch ends: not in two steps that follow one another.
      if (first)
        tally_.holds();
      else if (schedule.name.find(" with ") != std::string::npos)  // each moves when the training wants it to
        tally_.note("several schedules move one rate (" + schedule.name + "): how often each moves is not checked");
      else if (whole && seen.still > 0 && seen.last && steps == 1)
        tally_.breach({seen.still, name, "moved 0 times in 1 step, and moves in each of several steps later", 1});
      else if (whole || (moved >= 0 && moved < steps && !seen.each))
        tally_.holds();
      else
        tally_.breach({now.number, name,
                       "moved " + to_text(moved) + " times in " + to_text(steps) + (steps == 1 ? " step" : " steps"),
                       std::fabs(static_cast<double>(moved - steps))});
      if (!first) {
        if (moved < steps && seen.still == 0 && !seen.each) seen.still = now.number;
        seen = {now.number, schedule.count, seen.still, seen.each || (whole && seen.still == 0), whole};
      }
      if (!schedule.formula || schedule.formula->size() != schedule.rates.size()) continue;
      for (std::size_t g = 0; g < schedule.rates.size(); ++g) {
        if (close_to(schedule.rates[g], (*schedule.formula)[g], 1e-6) ||
            std::fabs(schedule.rates[g] - (*schedule.formula)[g]) < 1e-15)
          tally_.holds();
        else
          tally_.breach({now.number, "lr of group " + std::to_string(g),
                         "is " + to_text(schedule.rates[g].value) + ", " + schedule.name + " says " +
                             to_text((*schedule.formula)[g].value) + " at its count of " + to_text(schedule.count),
                         std::fabs(schedule.rates[g] - (*schedule.formula)[g]), 1e-6});
      }
    }
  }
}

void LossJudge::step(const Moment& now) {
  std::set<std::string> fitting;
  double told = 0;
  std::vector<double> losses;
  for (const auto& [rank, row] : now.step.ranks) {
    if (!row.loss || row.losses.empty() || row.scalars.contains("dropped")) return;
    double sum = 0, tokens = 0, weighed = 0;
    for (std::size_t i = 0; i < row.losses.size(); ++i) {
      sum += row.losses[i];
      const double target = i < row.targets.size() && row.targets[i] ? static_cast<double>(*row.targets[i]) : 0;
      tokens += target, weighed += target * row.losses[i];
    }
    told = *row.loss;
    const double count = static_cast<double>(row.losses.size());
    std::set<std::string> here;
    if (close_to(told, sum, 1e-5)) here.insert("their sum");
    if (close_to(told, sum / count, 1e-5)) here.insert("their mean");
    if (tokens > 0 && close_to(told, weighed / tokens, 1e-5)) here.insert("their mean by target tokens");
    if (close_to(told, sum / count * static_cast<double>(now.step.ranks.size()), 1e-5))
      here.insert("their mean times the ranks");
    losses.push_back(told);
    if (rank == now.step.ranks.begin()->first) {
      fitting = here;
      continue;
    }
    std::set<std::string> both;
    std::set_intersection(fitting.begin(), fitting.end(), here.begin(), here.end(), std::inserter(both, both.end()));
    fitting = both;
  }
  if (!begun_) {
    begun_ = true, rules_ = fitting;
    if (fitting.empty())
      tally_.lacks("the loss of the first step is neither sum nor mean of its micro-batches' losses");
    return;
  }
  if (rules_.empty()) return;
  std::set<std::string> both;
  std::set_intersection(fitting.begin(), fitting.end(), rules_.begin(), rules_.end(), std::inserter(both, both.end()));
  if (both.empty()) {
    tally_.breach({now.number, "loss",
                   to_text(told) + " is not " + joined(rules_, " or ") + " of the micro-batches' losses, as before" +
                       (fitting.empty() ? "" : ", but " + joined(fitting, " or "))});
  } else {
    rules_ = both;
    tally_.holds();
  }
}

}  // namespace zs::probe
