// SPDX-License-Identifier: Apache-2.0
#include "probe/scene.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/number.hpp"
#include "probe/bounds.hpp"
#include "probe/matching.hpp"
#include "probe/options.hpp"

namespace zs::probe {

using compare::Verdict;
namespace rule = probefile::rule;
using Outcome = Account::Outcome;

namespace {

/// An option that is not finite, or has such a number in a list.
bool is_wild(const Option& option) {
  for (const std::string word : {"nan", "inf", "-inf"}) {
    if (option.text == word || option.text.find('"' + word + '"') != std::string::npos) return true;
  }
  return false;
}

bool same_batches(const Step& a, const Step& b) {
  return std::equal(a.ranks.begin(), a.ranks.end(), b.ranks.begin(), b.ranks.end(),
                    [](const auto& x, const auto& y) { return x.second.batch == y.second.batch; });
}

bool holds(const Step& step, std::string_view place) {
  return std::ranges::any_of(step.tensors.all(), [&](const auto& one) { return one.first.starts_with(place); });
}

std::string pair_text(double a, double b) { return to_text(a) + " and " + to_text(b); }

std::map<std::string, std::string> generators_of(const Step& step) {
  std::map<std::string, std::string> found;
  for (const auto& [rank, row] : step.ranks) {
    for (const auto& [name, digest] : row.generators) {
      if (name != "python")  // which each process seeds by itself
        found["the random generator " + name + " of rank " + std::to_string(rank)] = digest;
    }
  }
  return found;
}

/// A value of each micro-batch, by its name.
template <class T, class Value>
std::map<std::string, T> of_micro_batches(const Step& step, bool by_samples, const std::string& what, Value value) {
  std::map<std::string, T> found;
  for (const auto& [key, name] : names_of_micro_batches(step, by_samples)) {
    const auto row = step.ranks.find(key.first);
    const std::optional<T> one = value(row->second, static_cast<std::size_t>(key.second));
    if (one) found[what + " of micro-batch " + name] = *one;
  }
  return found;
}

}  // namespace

std::set<std::string> frozen_in_one(const Run& a, const Run& b) {
  const auto recorded = [](const Run& run, const std::string& name) {
    return std::ranges::any_of(run.starts, [&](const auto& one) { return one.second.find(name) != nullptr; }) ||
           std::ranges::any_of(run.steps, [&](const auto& one) { return one.second.tensors.find(name) != nullptr; });
  };
  std::set<std::string> found;
  for (const std::string& parameter : a.frozen) {
    const std::string name = "param/" + parameter;
    if (b.frozen.contains(parameter) && recorded(a, name) != recorded(b, name)) found.insert(parameter);
  }
  return found;
}

Account::Outcome equal(const std::string& a, const std::string& b) {
  if (a == b) return {};
  return {Verdict::different, b + " instead of " + a};
}

Account::Outcome unjudged(bool same, const std::string& text) {
  return same ? Account::Outcome() : Account::Outcome{Verdict::inconclusive, text};
}

/// A number that the step makes: a loss, a norm.
Account::Outcome Account::Scene::number(const std::string& name, double x, double y) const {
  if (!std::isfinite(x) && !std::isfinite(y)) return {Verdict::failed, name + " is " + pair_text(x, y)};
  if (same_bits(x, y)) return {};
  const auto bound = found.judged.find(prefix + (name.starts_with("norm") ? "norm" : "number"));
  const double most = bound == found.judged.end() ? 0 : bound->second;
  const std::string text = name + ": " + pair_text(x, y);
  if (tolerance.exact() ? close_to(x, y, most) : tolerance.accepts(x, y))
    return {tolerance.exact() ? Verdict::rounding : Verdict::within, text};
  return {Verdict::different, text + (x != 0 && std::isfinite(y / x) ? ", x " + to_rounded_text(y / x, 4) : "")};
}

bool Account::Scene::frozen_elsewhere(const std::string& name) const {
  const std::string parameter = parameter_of(name);
  return in_one.contains(parameter) || (!alike && a.frozen.contains(parameter) && b.frozen.contains(parameter));
}

// ---- the fields of a step
void Account::Scene::enter(rule::Row) {}     // the number of the step, by which the two are paired
void Account::Scene::enter(rule::Places) {}  // whose lack of others is excused
void Account::Scene::enter(rule::File) {}    // its name: the values are those of the tensors
void Account::Scene::enter(rule::Unseen) {}  // of the run
void Account::Scene::enter(rule::Loss) {
  const auto listed_losses = [](const Step& step) {
    std::map<std::string, double> found;
    for (const auto& [rank, row] : step.ranks) {
      if (row.loss) found["loss of rank " + std::to_string(rank)] = *row.loss;
    }
    return found;
  };
  const auto batch = [](const Step& step) {
    std::map<int, std::multiset<std::string>> found;
    for (const auto& [rank, row] : step.ranks) {
      for (const auto& micro : row.batch) found[rank].insert(micro.begin(), micro.end());
    }
    return found;
  };
  const bool same_samples = batch(*left) == batch(*right);
  each(
      listed_losses(*left), listed_losses(*right),
      [&](const std::string& name, double x, double y) {
        if (!alike && std::isfinite(x) && std::isfinite(y)) return excused();  // of other samples
        Outcome one = number(name, x, y);
        if (one.verdict == Verdict::different && !same_samples && !by_samples) one.verdict = Verdict::inconclusive;
        if (one.verdict == Verdict::different && to.loss_.empty())
          to.loss_ = prefix.substr(0, prefix.size() - 2) + ", " + name.substr(8) + ": " + pair_text(x, y);
        return one;
      },
      [&](const std::string&) { return layout(); });
}

void Account::Scene::enter(rule::Losses) {
  const auto value = [](const StepRow& row, std::size_t micro) {
    return micro < row.losses.size() ? std::optional<double>(row.losses[micro].value) : std::nullopt;
  };
  each(
      of_micro_batches<double>(*left, by_samples, "loss", value),
      of_micro_batches<double>(*right, by_samples, "loss", value),
      [&](const std::string& name, double x, double y) {
        if (micro_batch() && std::isfinite(x) && std::isfinite(y)) return excused();  // divided by another number
        const auto factor = found.judged.find(prefix + "loss factor");  // a loss scale: gradients have it, too
        if (factor != found.judged.end() && close_to(x * factor->second, y, 0.02)) return excused();
        return number(name, x, y);
      },
      [&](const std::string&) { return micro_batch(); });
}

void Account::Scene::enter(rule::Targets) {
  const auto value = [](const StepRow& row, std::size_t micro) -> std::optional<std::string> {
    if (micro >= row.targets.size()) return std::nullopt;
    return row.targets[micro] ? to_text(*row.targets[micro]) : "unknown";
  };
  each(
      of_micro_batches<std::string>(*left, by_samples, "target tokens", value),
      of_micro_batches<std::string>(*right, by_samples, "target tokens", value),
      [&](const std::string& name, const std::string& x, const std::string& y) {
        Outcome one = equal(x, y);
        if (one.verdict == Verdict::exact) return one;
        if (micro_batch()) return excused();
        const bool unknown = x == "unknown" || y == "unknown";  // the model of one side gets no labels
        return Outcome{unknown ? Verdict::inconclusive : Verdict::different, name + ": " + one.text};
      },
      [&](const std::string&) { return micro_batch(); });
}

void Account::Scene::enter(rule::Samples) {
  const auto samples_of = [&](const Step& step) {
    std::multiset<std::string> found_samples;
    for (const auto& [rank, row] : step.ranks) {
      for (const auto& micro : row.batch) found_samples.insert(micro.begin(), micro.end());
    }
    if (alike || found_samples.empty()) return found_samples;
    std::map<std::string, std::size_t> counts;  // several ranks may share a sample: each sample then counts as often
    for (const std::string& one : found_samples) ++counts[one];
    const std::size_t shared = std::ranges::min_element(counts, {}, [](const auto& one) { return one.second; })->second;
    std::multiset<std::string> distinct;
    for (const auto& [one, count] : counts) {
      for (std::size_t i = 0; i < (count + shared - 1) / shared; ++i) distinct.insert(one);
    }
    return distinct;
  };
  std::map<std::string, std::multiset<std::string>> mine, theirs;
  if (auto samples = samples_of(*left); !samples.empty()) mine["samples"] = std::move(samples);
  if (auto samples = samples_of(*right); !samples.empty()) theirs["samples"] = std::move(samples);
  each(
      mine, theirs,
      [&](const std::string&, const auto& x, const auto& y) {
        const bool common = std::any_of(x.begin(), x.end(), [&](const std::string& one) { return y.contains(one); });
        const bool renamed = alike && !common && x.size() == y.size() && cut && effects_same(*left, *right);
        (renamed ? to.samples_.apart : to.samples_.same).push_back(to.at_);
        if (renamed) return excused();            // samples() enters it
        if (resumed && !cut) return excused();    // a part of the step was made before the stop
        if (!alike && !common) return excused();  // made in another type
        if (alike && x == y && !by_samples && !same_batches(*left, *right))
          return Outcome{Verdict::rounding, "the ranks hold the samples in another order"};
        return unjudged(x == y, "the samples are others");
      },
      [&](const std::string&) { return layout(); });
}

void Account::Scene::samples() {
  const auto& [known, renamed] = to.samples_;
  if (renamed.empty()) return;
  const bool of_all = known.empty() && renamed.size() > 1;
  for (const std::int64_t step : renamed) {
    const std::string entry = thing(step, "samples by name");
    to.at_ = step;
    to.add(compare::Holder::a, entry), to.add(compare::Holder::b, entry);
    to.enter(entry, of_all ? excused() : unjudged(false, "the samples are others"));
  }
  if (of_all)
    to.notes_.push_back(
        "no sample of a step has the digest of one on the other side, and all gradients have the same bits: the two "
        "hand other arguments to the model, such as labels, or values that nothing depends on");
}

void Account::Scene::enter(rule::Scalars) {
  const auto listed_scalars = [&](const Step& step) {
    std::map<std::string, double> found_scalars = alike ? std::map<std::string, double>() : step.scalars;
    for (const auto& [rank, row] : step.ranks) {
      if (!alike) break;
      for (const auto& [key, value] : row.scalars) found_scalars[key + " of rank " + std::to_string(rank)] = value;
    }
    // Who wants to know the norm alone clips to infinity.
    std::erase_if(found_scalars, [](const auto& one) {
      return one.first.starts_with("clip") && std::isinf(one.second) && one.second > 0;
    });
    return found_scalars;
  };
  const bool directed = holds(*left, "direction/") != holds(*right, "direction/");
  const std::string note = "the norm of one side is that of Muon's directions, which replace gradients: not compared";
  if (directed && std::ranges::find(to.notes_, note) == to.notes_.end()) to.notes_.push_back(note);
  each(
      listed_scalars(*left), listed_scalars(*right),
      [&](const std::string& name, double x, double y) {
        if (name.starts_with("norm")) return directed ? excused() : number(name, x, y);
        if (!cut || !alike) {
          if (!name.starts_with("clip")) return same_bits(x, y) ? Outcome{} : excused();
        }
        if (!std::isfinite(x) || !std::isfinite(y)) return Outcome{Verdict::failed, name + " is " + pair_text(x, y)};
        if (same_bits(x, y)) return Outcome{};
        return Outcome{close_to(x, y, 1e-6) ? Verdict::rounding : Verdict::different, name + ": " + pair_text(x, y)};
      },
      [&](const std::string&) { return layout(); });
}

void Account::Scene::enter(rule::Groups) {
  // In one layout each rank has its own; between layouts those of all ranks together.
  const auto listed_groups = [&](const Step& step) {
    std::map<std::string, const Group*> found_groups;
    const auto list = [&](const std::vector<Group>& groups, const std::string& who) {
      for (std::size_t i = 0; i < groups.size(); ++i) {
        for (const std::string& name : groups[i].params) found_groups["options of " + name + who] = &groups[i];
        if (groups[i].params.empty()) found_groups["options of group " + std::to_string(i) + who] = &groups[i];
      }
    };
    if (!alike) list(step.groups, "");
    for (const auto& [rank, row] : step.ranks) {
      if (alike) list(row.groups, a.ranks > 1 ? " of rank " + std::to_string(rank) : "");
    }
    return found_groups;
  };
  const bool say = !groups_of(*left).empty() && !groups_of(*right).empty();
  each(
      listed_groups(*left), listed_groups(*right),
      [&](const std::string& name, const Group* x, const Group* y) {
        Outcome worst;
        for (const auto& [key, value] : x->options) {
          const auto theirs = y->options.find(key);
          if (is_wild(value) && theirs != y->options.end() && is_wild(theirs->second))
            worst = {Verdict::failed, name + ": " + key + " is " + value.text};
        }
        for (const OptionApart& option : options_apart(*x, *y)) {
          if (option.verdict == Verdict::inconclusive && !alike) continue;  // an option of its layout
          if (option.verdict == Verdict::inconclusive && a.torch != b.torch &&
              (implied(*x, option.key) || implied(*y, option.key)))
            continue;
          if (option.verdict > worst.verdict) worst = {option.verdict, name + ": " + option.key + " is " + option.text};
        }
        return worst;
      },
      [&](const std::string& name) { return names_lack(name.substr(11), say); });
}

void Account::Scene::enter(rule::Counters) {
  const auto listed_counters = [&](const Step& step) {
    std::map<std::string, std::string> found_counters;
    for (const auto& [name, steps] : counters(step)) {
      if (!alike) found_counters["steps of " + name] = steps;
    }
    for (const auto& [rank, row] : step.ranks) {
      for (const auto& [steps, names] : row.counters) {
        for (const std::string& name : names) {
          if (alike)
            found_counters["steps of " + name + (a.ranks > 1 ? " of rank " + std::to_string(rank) : "")] = steps;
        }
      }
    }
    return found_counters;
  };
  const bool say = !counters(*left).empty() && !counters(*right).empty();
  each(
      listed_counters(*left), listed_counters(*right),
      [&](const std::string& name, const std::string& x, const std::string& y) {
        return x == y ? Outcome{} : Outcome{Verdict::different, name + ": " + y + " instead of " + x};
      },
      [&](const std::string& name) { return names_lack(name.substr(9), say); });
}

void Account::Scene::enter(rule::Schedules) {
  const auto listed_schedules = [](const Step& step) {
    std::map<std::string, std::string> found_schedules;
    for (const auto& [rank, row] : step.ranks) {
      for (std::size_t i = 0; i < row.schedules.size(); ++i) {
        const probefile::Schedule& one = row.schedules[i];
        std::string text = to_text(one.count) + " at";
        for (const probefile::Real& rate : one.rates) text += " " + to_text(rate.value);
        if (one.formula) text += ", by its formula";
        for (const probefile::Real& rate : one.formula.value_or(std::vector<probefile::Real>{}))
          text += " " + to_text(rate.value);
        found_schedules["schedule " + std::to_string(i) + " of rank " + std::to_string(rank) + ", " + one.name] = text;
      }
    }
    return found_schedules;
  };
  each(
      listed_schedules(*left), listed_schedules(*right),
      [&](const std::string& name, const std::string& x, const std::string& y) {
        if (x == y || !alike) return x == y ? Outcome{} : excused();
        return Outcome{Verdict::inconclusive,
                       name + " is " + y + " instead of " + x};  // the rates themselves are compared
      },
      [&](const std::string&) { return layout(); });
}

bool Account::Scene::shows_draws() const {
  return std::ranges::all_of(std::array{left, right}, [](const Step* step) {
    return holds(*step, "param/") && (holds(*step, "grad/") || holds(*step, "direction/")) &&
           std::ranges::all_of(step->ranks, [](const auto& row) { return !row.second.batch.empty(); });
  });
}

void Account::Scene::enter(rule::Generators) {
  each(
      generators_of(*left), generators_of(*right),
      [&](const std::string& name, const std::string& x, const std::string& y) {
        if (alike) (x == y ? to.states_[name].same : to.states_[name].apart).push_back(to.at_);
        return x == y ? Outcome{} : excused();  // generators() enters it
      },
      [&](const std::string&) { return layout(); });
}

void Account::Scene::generators() {
  for (const auto& [name, states] : to.states_) {
    if (states.apart.empty()) continue;
    const std::int64_t first = states.apart.front(), last = states.apart.back();
    // States that have parted do not meet again by equal draws: where they do, one state alone is another.
    const bool parted = states.same.empty() || states.same.back() < first;
    const bool shown = first < last && to.unsound_ <= first && std::ranges::all_of(states.apart, [&](auto step) {
                         return step == first || to.shows_draws_.contains(step);
                       });
    const std::string entry = thing(first, name);
    to.add(compare::Holder::a, entry), to.add(compare::Holder::b, entry);
    if (parted && shown) {
      to.enter(entry, excused());
      to.notes_.push_back(entry + " is in another state from then on, and no value of a later step shows it; what is " +
                          "drawn from it after step " + to_text(last) + " is not compared");
    } else {
      to.enter(entry, unjudged(false, name + " is in another state" +
                                          (parted ? ", and no later step shows whether that matters" : "")));
    }
  }
}

void Account::Scene::enter(rule::Computed) {
  const std::map<std::string, std::string> mine{{"type of the forward pass", left->computed}},
      theirs{{"type of the forward pass", right->computed}};
  bool differ = false;
  for (const auto& [name, tensor] : left->tensors.all()) {
    const Tensor* const other = right->tensors.find(name);
    differ |= other && tensor.digest != other->digest;
  }
  each(
      mine, theirs,
      [&](const std::string& name, const std::string& x, const std::string& y) {
        if (x == y || partial) return Outcome{};
        if (!alike) return excused();
        if (differ) return Outcome{Verdict::rounding, ""};  // the coarser of the two is the bound
        return Outcome{Verdict::inconclusive, name + " is '" + y + "' instead of '" + x + "'"};
      },
      [&](const std::string&) { return layout(); });
}

}  // namespace zs::probe
