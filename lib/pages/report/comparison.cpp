// SPDX-License-Identifier: Apache-2.0
#include "report/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/number.hpp"
#include "report/words.hpp"
#include "stat/divergence.hpp"
#include "summary/difference.hpp"
#include "summary/unit.hpp"

namespace zs::report {
namespace {

/// The differences of two revisions besides their revision, among attributes of both: an older program may record less.
/// Attributes that vary equally over the runs of both, such as a seed, do not count as a difference.
std::vector<attribute::Difference> beside_revision(const Condition& baseline, const Condition& other) {
  std::vector<attribute::Difference> differences = summary::differences({&baseline, &other});
  const auto split = static_cast<std::ptrdiff_t>(baseline.members.size());
  std::erase_if(differences, [&](const attribute::Difference& one) {
    const std::set<std::string> here(one.values.begin(), one.values.begin() + split),
        others(one.values.begin() + split, one.values.end());
    const attribute::Attribute* const row = attribute::find(one.name);
    return here == others || here.count("") + others.count("") > 0 || (row && row->program);
  });
  return differences;
}

/// What state digests say of two revisions, among runs that train the same thing in the same arithmetic.
enum class Digests {
  nothing,  ///< no two such runs of the two have one
  vary,     ///< they differ between such runs of the baseline alone
  same,
  different,
};

Digests digests(const Findings& found, const Condition& baseline, const Condition& other) {
  struct Sides {
    std::set<std::string> before, after;
  };
  std::map<std::pair<attribute::Facts, attribute::Facts>, Sides>
      trainings;  // by what decides and rounds, but the program
  for (const DigestClass& one : found.digests) {
    attribute::Facts arithmetic = one.arithmetic;
    std::erase_if(arithmetic, [](const auto& fact) {
      const attribute::Attribute* const row = attribute::find(fact.first);
      return row && row->program;
    });
    Sides& sides = trainings[{one.decides, std::move(arithmetic)}];
    for (const DigestGroup& group : one.groups) {
      for (const Condition* const member : group.members) {
        if (member == &baseline) sides.before.insert(group.digest);
        if (member == &other) sides.after.insert(group.digest);
      }
    }
  }
  Digests made = Digests::nothing;
  for (const auto& [training, sides] : trainings) {
    if (sides.before.size() > 1) return Digests::vary;
    if (sides.before.empty() || sides.after.empty()) continue;
    made = std::max(made, sides.before == sides.after ? Digests::same : Digests::different);
  }
  return made;
}

/// Several runs of the condition have a curve, and at every step the same loss.
bool repeats_exactly(const Condition& condition) { return condition.curve && stat::spread(*condition.curve) == 0; }

Numerics made(Verdict verdict, std::string found, Text text) {
  Numerics result;
  result.verdict = verdict;
  result.found = std::move(found);
  result.text = std::move(text);
  return result;
}

/// The difference of the two: the losses with the amount, or what else if their means are equal.
std::string apart(const summary::Pair& pair, const Condition& other) {
  if (pair.difference_step)
    return "losses differ by up to " +
           (pair.loss_difference ? loss_text(*pair.loss_difference, other.loss_unit) : "an unknown amount");
  if (pair.differs_in.starts_with("loss")) return "losses of single runs differ, their means do not";
  return "losses are equal, " + pair.differs_in + " differs";
}

Numerics judged(const summary::Pair& pair, const Condition& baseline, const Condition& other, Digests digests) {
  const auto step = [](const std::optional<std::int64_t>& value) { return value ? to_text(*value) : ""; };
  const bool inside = pair.verdict == "inside",
             same_digest = !baseline.state_digest.empty() && baseline.state_digest == other.state_digest;
  const Text digest = say(" (state digest {})", code(other.state_digest));
  // Variation among a revision's runs excuses nothing if the baseline's do not vary at all.
  const bool excused = inside && !repeats_exactly(baseline);
  if (same_digest && (excused || (!inside && pair.verdict != "different")))
    return made(Verdict::good, "identical bits", say("{}{}", strong("identical bits"), digest));
  if (excused && digests == Digests::different) {
    Numerics result = made(Verdict::bad, "different",
                           say("{} of runs that train the same thing: {}, from step {}", bad("different bits"),
                               apart(pair, other), step(pair.first_difference)));
    result.from_step = pair.first_difference;
    return result;
  }
  if (excused)
    return made(Verdict::good, "within the envelope",
                say("{} of repeated runs: {}, from step {}", strong("within the envelope"), apart(pair, other),
                    step(pair.first_difference)));
  if (inside || pair.verdict == "different") {
    const auto from = inside || !pair.first_outside ? pair.first_difference : pair.first_outside;
    Text text = say("{}: {}", bad("different from step " + step(from)), apart(pair, other));
    if (inside)
      text += say("; those of repeated runs of {} do not differ at all", code(baseline.name));
    else if (pair.first_outside)
      text += ", more than chance makes of repeated runs" + beside_repeats(pair, other.loss_unit);
    if (same_digest) text += say(", though the parameters end as the same bits{}", digest);
    Numerics result = made(Verdict::bad, "different", std::move(text));
    result.from_step = from;
    return result;
  }
  const std::string steps = step(pair.steps);
  if (pair.verdict == "identical" && pair.digest == "different") {
    if (digests != Digests::vary)
      return made(Verdict::bad, "different",
                  say("{}, though the losses are equal at all {} logged steps", bad("different bits"), steps));
    return made(Verdict::good, "identical losses",
                say("{} at all {} logged steps; state digests tell nothing, since they vary between the runs of {}",
                    strong("identical losses"), steps, code(baseline.name)));
  }
  if (pair.verdict == "identical")
    return made(Verdict::good, "identical losses",
                say("{} at all {} logged steps; without state digests the parameters are not shown to be equal",
                    strong("identical losses"), steps));
  if (pair.verdict == "incomplete") {
    const std::string missing = step(pair.steps_missing),
                      text = "equal losses at the " + steps + " steps that both logged; ";
    if (other.count("points") < baseline.count("points"))  // what was not computed is not equal
      return made(Verdict::bad, "incomplete",
                  say("{}{}", text, bad(missing + (missing == "1" ? " step is" : " steps are") + " missing")));
    return made(Verdict::open, "unknown", say("{}{} {} in one alone", text, missing, missing == "1" ? "is" : "are"));
  }
  return made(Verdict::open, "unknown", "not known: no step in common");
}

Numerics numerics_found(const metric::Store& store, const Findings& found, const Condition& baseline,
                        const Condition& other) {
  for (const summary::Pair& pair : summary::pairs(store)) {
    if (!pair.of(baseline.name, other.name)) continue;
    Numerics result = judged(pair, baseline, other, digests(found, baseline, other));
    result.loss_difference = pair.loss_difference;
    result.envelope = pair.envelope;
    return result;
  }
  if (baseline.state_digest.empty() || baseline.state_digest != other.state_digest)
    return made(Verdict::open, "unknown", "not known: the summary has no comparison of the two");
  return made(Verdict::good, "identical bits",
              say("{} (state digest {})", strong("identical bits"), code(other.state_digest)));
}

/// The conclusion from the numbers, and whether it is a fault: revisions that train different things, or in another
/// arithmetic, are not expected to end with the same bits.
Numerics numerics(const metric::Store& store, const Findings& findings, const Condition& baseline,
                  const Condition& other) {
  Numerics found = numerics_found(store, findings, baseline, other);
  const std::vector<attribute::Difference> beside = beside_revision(baseline, other);
  const bool excused = attribute::expected_bits(beside) == attribute::Bits::other_training
                           ? found.found != "identical bits"
                           : found.verdict == Verdict::bad;
  if (beside.empty() || !excused || attribute::expected_bits(beside) == attribute::Bits::same) return found;
  found.verdict = Verdict::open;
  found.text = say("the revisions {}; {}", attribute::reason(beside), found.text);
  return found;
}

/// `more` and `less` are the words for a ratio above and below 1: "slower", "faster".
Answer judged(const summary::Ratio& ratio, double gate, const std::string& more, const std::string& less) {
  if (!std::isfinite(ratio.value)) return {Verdict::open, "not known: at least one revision logged none"};
  const std::string change =
      ratio.value == 1 ? "no change" : percent(std::abs(ratio.value - 1)) + " " + (ratio.value > 1 ? more : less);
  if (ratio.exact && ratio.value == 1) return {Verdict::good, "the same in every run"};
  if (!ratio.known())
    return {Verdict::open, say("{}; one of the two ran once: no interval, so nothing is shown", change)};
  const std::string found = ratio.exact && ratio.coarse == 0 ? ", the same in every run"
                            : ratio.too_few()
                                ? "; so few runs are too few to tell: take six of each"
                                : "; the smallest change that so many runs find is " + percent(ratio.smallest);
  const std::string allowed = "the " + percent(gate) + " allowed";
  if (ratio.low > 1 + gate) return {Verdict::bad, say("{}, beyond {}", bad(change), allowed)};
  if (ratio.high > 1 + gate) {
    const char* const pattern = ratio.differs() ? "{}; whether it is within {} is not shown{}"
                                                : "no difference shown ({}), nor that it is within {}{}";
    const std::string hidden = ratio.coarse > 0 ? "; one unit of the last printed digit is " + percent(ratio.coarse) +
                                                      ", and hides how far the runs of a revision differ"
                                                : "";
    return {Verdict::open, say(pattern, change, allowed, found + hidden)};
  }
  if (!ratio.differs()) return {Verdict::good, say("no difference shown ({}){}", change, found)};
  return {Verdict::good, say("{}{}{}", strong(change), ratio.value > 1 ? ", within " + allowed : "", found)};
}

Verdict worst(Verdict a, Verdict b) {
  if (a == Verdict::bad || b == Verdict::bad) return Verdict::bad;
  return a == Verdict::open || b == Verdict::open ? Verdict::open : Verdict::good;
}

/// The result for a pair of which one failed: nothing else.
void leave_open(Comparison& one) {
  const char* const why = "not compared";
  one.numerics.text = one.time.text = one.memory.text = why;
  one.ratios.time = one.ratios.memory = summary::ratio({});
  one.compared = false;
}

}  // namespace

Comparisons compare(const metric::Store& store, const Findings& found, const std::string& source, const Gate& gate) {
  if (found.conditions.size() < 2)
    throw Error(source, 0, "a comparison of revisions needs two conditions (zs-aggregate --by revision)");
  const Condition& baseline = summary::baseline(found.conditions, gate.baseline);
  Comparisons made;
  made.baseline = &baseline;
  made.verdict = baseline.bad() ? Verdict::open : Verdict::good;
  for (const Condition* const failed : found.bad) {
    made.text += say("{} {}. ", code(failed->name), bad(status_text(*failed)));
    if (!baseline.bad()) made.verdict = Verdict::bad;
  }
  for (const Condition& condition : found.conditions) {
    if (&condition == &baseline) continue;
    Comparison one;
    one.other = &condition;
    if (baseline.bad() || condition.bad()) {
      leave_open(one);
      made.others.push_back(std::move(one));
      continue;
    }
    one.ratios = summary::ratios(baseline, condition);
    one.numerics = numerics(store, found, baseline, condition);
    one.time = judged(one.ratios.time, gate.max_slowdown, "slower", "faster");
    // Many trainers log no memory; if neither revision has it, that is not an open question.
    one.memory = one.ratios.has_memory ? judged(one.ratios.memory, gate.max_slowdown, "more memory", "less memory")
                                       : Answer{Verdict::good, "not logged"};
    made.text += say("{} against {}: {}. Time: {}. Memory: {}. ", code(condition.name), code(baseline.name),
                     one.numerics.text, one.time.text, one.memory.text);
    for (const Answer* const answer : std::initializer_list<const Answer*>{&one.numerics, &one.time, &one.memory})
      made.verdict = worst(made.verdict, answer->verdict);
    made.others.push_back(std::move(one));
  }
  // Tensors that differ are a difference, whatever the printed losses say; and what differs first is said first.
  const auto fact = [&](const char* name) { return store.runs.empty() ? "" : store.runs.front().attribute(name); };
  made.probe = {fact("probe_verdict"), fact("probe_comparison")};
  const bool differ = made.probe.verdict == "DIFFERENT";
  if (differ) made.verdict = Verdict::bad;
  if (!made.probe.sentence.empty())
    made.text = say("{} {}", differ ? bad(made.probe.sentence + ".") : Text("Recorded: " + made.probe.sentence + "."),
                    made.text);
  made.label = made.verdict == Verdict::good  ? "Same or better"
               : made.verdict == Verdict::bad ? "Worse or different"
                                              : "Inconclusive";
  return made;
}

}  // namespace zs::report
