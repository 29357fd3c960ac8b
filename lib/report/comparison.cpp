// SPDX-License-Identifier: Apache-2.0
#include "report/comparison.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/name.hpp"
#include "base/number.hpp"
#include "report/words.hpp"
#include "stat/divergence.hpp"
#include "summary/difference.hpp"
#include "summary/unit.hpp"

namespace zs::report {
namespace {

double peak_of(const summary::Member& member) { return member.peak_mem.value_or(plot::kNone); }
double time_of(const summary::Member& member) { return member.time_mean.value_or(plot::kNone); }

/// In what two revisions differ beside their revision, of what both say: an older program may record less. What varies
/// over the runs of both alike, such as a seed, is no difference.
std::vector<attribute::Difference> beside_revision(const Condition& baseline, const Condition& other) {
  static constexpr std::array kRevision = {"revision", "version", "commit", "uncommitted_changes", "git_diff"};
  std::vector<attribute::Difference> all = summary::differences({&baseline, &other});
  const auto split = static_cast<std::ptrdiff_t>(baseline.members.size());
  std::erase_if(all, [&](const attribute::Difference& one) {
    const std::set<std::string> here(one.values.begin(), one.values.begin() + split),
        there(one.values.begin() + split, one.values.end());
    return here == there || here.count("") + there.count("") > 0 ||
           std::find(kRevision.begin(), kRevision.end(), one.name) != kRevision.end();
  });
  return all;
}

/// The values of runs that ran beside each other, or of all runs where the records do not tell.
Samples samples(const Condition& baseline, const Condition& other,
                const std::function<double(const summary::Member&)>& value) {
  const auto by_run = [&](const Condition& condition) {
    std::map<std::string, double> values;
    for (const summary::Member& member : condition.members) {
      if (std::isfinite(value(member))) values[member.run->attribute("run")] = value(member);
    }
    return values;
  };
  const std::map<std::string, double> a = by_run(baseline), b = by_run(other);
  Samples made;
  made.paired = a.size() > 1 && a.count("") + b.count("") == 0;
  for (const auto& [run, of_a] : a) {
    if (const auto of_b = b.find(run); of_b != b.end())
      made.baseline.push_back(of_a), made.other.push_back(of_b->second);
  }
  if (made.paired && made.baseline.size() > 1) return made;
  made = {};
  for (const auto& [from, to] : {std::pair{&baseline, &made.baseline}, {&other, &made.other}}) {
    for (const summary::Member& member : from->members) {
      if (std::isfinite(value(member))) to->push_back(value(member));
    }
  }
  return made;
}

/// A row of the table "divergence" that holds the pair, in either order; -1 without one.
long pair_row(const metric::Table& table, const std::string& a, const std::string& b) {
  const metric::Column* const one = table.find("condition");
  const metric::Column* const two = table.find("baseline");
  if (!one || !two || one->type() != metric::Type::text || two->type() != metric::Type::text) return -1;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string &x = one->texts()[row], &y = two->texts()[row];
    if ((x == a && y == b) || (x == b && y == a)) return static_cast<long>(row);
  }
  return -1;
}

std::string cell(const metric::Table& table, const char* column, long row) {
  const metric::Column* const found = table.find(column);
  return found ? found->text(static_cast<std::size_t>(row)) : "";
}

/// Every run has a digest, and not all are equal.
bool digests_vary(const Condition& condition) {
  bool vary = false;
  for (const summary::Member& member : condition.members) {
    const std::string digest = member.run->attribute("state_digest");
    if (digest.empty()) return false;
    vary = vary || digest != condition.members.front().run->attribute("state_digest");
  }
  return vary;
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

Numerics judged(const metric::Table& table, long row, const Condition& baseline, const Condition& other) {
  const std::string verdict = cell(table, "verdict", row), first = cell(table, "first_difference", row),
                    outside = cell(table, "first_outside", row), steps = cell(table, "steps", row);
  const bool same_digest = !baseline.state_digest.empty() && baseline.state_digest == other.state_digest;
  const auto distance = parse_real(cell(table, "loss_difference", row));
  const std::string at_most = distance ? loss_text(*distance) : "an unknown amount";
  const Text digest = Text(" (state digest ") + code(other.state_digest) + Text(")");
  // What a revision's own runs differ by excuses nothing where the baseline's do not differ at all.
  const bool excused = verdict == "inside" && !repeats_exactly(baseline);
  if (same_digest && (excused || (verdict != "inside" && verdict != "different")))
    return made(Verdict::good, "identical bits", Text(strong("identical bits")) + digest);
  if (excused) {
    return made(Verdict::good, "within the envelope",
                Text(strong("within the envelope")) +
                    Text(" of repeated runs: losses differ by at most " + at_most + " nats/token, from step " + first));
  }
  if (verdict == "inside" || verdict == "different") {
    const std::string step = verdict == "inside" || outside.empty() ? first : outside;
    Text text = Text(bad("different from step " + step)) + Text(": losses differ by up to " + at_most + " nats/token");
    if (verdict == "inside")
      text += Text("; those of repeated runs of ") + code(baseline.name) + Text(" do not differ at all");
    else if (!outside.empty())
      text += ", more than repeated runs do";
    if (same_digest) text += Text(", though the parameters end as the same bits") + digest;
    Numerics result = made(Verdict::bad, "different", std::move(text));
    result.from_step = parse_int(step);
    return result;
  }
  if (verdict == "identical" && cell(table, "digest", row) == "different") {
    const Text losses = Text("the losses are equal at all " + steps + " logged steps");
    if (digests_vary(baseline)) {
      return made(Verdict::good, "identical losses",
                  Text(strong("identical losses")) +
                      Text(" at all " + steps +
                           " logged steps; state digests tell "
                           "nothing, since they vary between the runs of ") +
                      code(baseline.name));
    }
    return made(Verdict::bad, "different", Text(bad("different bits")) + Text(", though ") + losses);
  }
  if (verdict == "identical") {
    return made(
        Verdict::good, "identical losses",
        Text(strong("identical losses")) +
            Text(" at all " + steps + " logged steps; without state digests the parameters are not shown to be equal"));
  }
  if (verdict == "incomplete") {
    return made(Verdict::open, "unknown",
                "equal losses at the " + steps + " steps that both logged; " + cell(table, "steps_missing", row) +
                    " are in one alone");
  }
  return made(Verdict::open, "unknown", "not known: no step in common");
}

Numerics numerics_found(const metric::Store& store, const Condition& baseline, const Condition& other) {
  const auto entry = store.tables.find("divergence");
  const long row = entry == store.tables.end() ? -1 : pair_row(entry->second, baseline.name, other.name);
  if (row < 0) {
    if (!baseline.state_digest.empty() && baseline.state_digest == other.state_digest) {
      return made(Verdict::good, "identical bits",
                  Text(strong("identical bits")) + Text(" (state digest ") + code(other.state_digest) + Text(")"));
    }
    return made(Verdict::open, "unknown", "not known: the summary has no comparison of the two");
  }
  Numerics result = judged(entry->second, row, baseline, other);
  result.loss_difference = parse_real(cell(entry->second, "loss_difference", row));
  result.envelope = parse_real(cell(entry->second, "envelope", row));
  return result;
}

/// What the numbers show, and whether it is a fault: revisions that train different things, or in another arithmetic,
/// are not expected to end with the same bits.
Numerics numerics(const metric::Store& store, const Condition& baseline, const Condition& other) {
  Numerics found = numerics_found(store, baseline, other);
  const std::vector<attribute::Difference> beside = beside_revision(baseline, other);
  const bool excused = attribute::expected_bits(beside) == attribute::Bits::other_training
                           ? found.found != "identical bits"
                           : found.verdict == Verdict::bad;
  if (beside.empty() || !excused || attribute::expected_bits(beside) == attribute::Bits::same) return found;
  found.verdict = Verdict::open;
  found.text = Text("the revisions " + attribute::reason(beside) + "; ") + found.text;
  return found;
}

/// `more` and `less` are the words for a ratio above and below 1: "slower", "faster".
Answer judged(const Ratio& ratio, double gate, const std::string& more, const std::string& less) {
  if (!std::isfinite(ratio.value)) return {Verdict::open, "not known: the runs of a revision have no value"};
  const std::string change =
      ratio.value == 1 ? "no change" : percent(std::abs(ratio.value - 1)) + " " + (ratio.value > 1 ? more : less);
  if (ratio.exact && ratio.value == 1) return {Verdict::good, "the same in every run"};
  if (!ratio.known())
    return {Verdict::open, Text(change + ", from a single run of at least one: no interval, so nothing is shown")};
  const std::string found = ratio.exact ? ", the same in every run"
                                        : "; the smallest change that so many runs find is " + percent(ratio.smallest);
  if (ratio.low > 1 + gate)
    return {Verdict::bad, Text(bad(change)) + Text(", beyond the " + percent(gate) + " allowed")};
  if (ratio.high > 1 + gate) {
    const std::string allowed = " within the " + percent(gate) + " allowed";
    return {Verdict::open, Text(ratio.differs() ? change + "; whether it is" + allowed + " is not shown"
                                                : "no difference shown (" + change + "), nor that it is" + allowed) +
                               Text(found)};
  }
  if (ratio.differs())
    return {Verdict::good, Text(strong(change)) +
                               Text(ratio.value > 1 ? ", within the " + percent(gate) + " allowed" : "") + Text(found)};
  return {Verdict::good, Text("no difference shown (" + change + ")" + found)};
}

Verdict worst(Verdict a, Verdict b) {
  if (a == Verdict::bad || b == Verdict::bad) return Verdict::bad;
  return a == Verdict::open || b == Verdict::open ? Verdict::open : Verdict::good;
}

const Condition& chosen(const Findings& found, const std::string& name) {
  if (name.empty()) return found.conditions.front();
  std::vector<std::string> all;
  for (const Condition& condition : found.conditions) {
    if (condition.name == name) return condition;
    all.push_back(condition.name);
  }
  throw UsageError("no condition '" + name + "' to be the baseline" + did_you_mean(name, all));
}

/// What comes of a pair of which one failed: nothing but that.
void leave_open(Comparison& one) {
  const char* const why = "not compared";
  one.numerics.text = one.time.text = one.memory.text = why;
  one.time_ratio = one.memory_ratio = ratio({});
  one.compared = false;
}

}  // namespace

Comparisons compare(const metric::Store& store, const Findings& found, const std::string& source, const Gate& gate) {
  if (found.conditions.size() < 2)
    throw Error(source, 0, "a comparison of revisions needs two conditions (zs-aggregate --by revision)");
  const Condition& baseline = chosen(found, gate.baseline);
  Comparisons made;
  made.baseline = &baseline;
  made.verdict = baseline.bad() ? Verdict::open : Verdict::good;
  for (const Condition* const failed : found.bad) {
    made.text += code(failed->name) + Text(" ") + Text(bad(status_text(*failed))) + Text(". ");
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
    const Samples times = samples(baseline, condition, time_of), peaks = samples(baseline, condition, peak_of);
    const std::vector<Ratio> ratios = holm({times, peaks});
    one.time_ratio = ratios[0], one.memory_ratio = ratios[1];
    one.pairs = times.paired ? times.baseline.size() : 0;
    one.numerics = numerics(store, baseline, condition);
    one.time = judged(ratios[0], gate.max_slowdown, "slower", "faster");
    // Many trainers log no memory; nobody waits for what neither revision says.
    one.memory = peaks.baseline.empty() && peaks.other.empty()
                     ? Answer{Verdict::good, "not logged"}
                     : judged(ratios[1], gate.max_slowdown, "more memory", "less memory");
    made.text += code(condition.name) + Text(" against ") + code(baseline.name) + Text(": ") + one.numerics.text +
                 Text(". Time: ") + one.time.text + Text(". Memory: ") + one.memory.text + Text(". ");
    for (const Answer* const answer : std::initializer_list<const Answer*>{&one.numerics, &one.time, &one.memory})
      made.verdict = worst(made.verdict, answer->verdict);
    made.others.push_back(std::move(one));
  }
  made.label = made.verdict == Verdict::good  ? "Same or better"
               : made.verdict == Verdict::bad ? "Worse or different"
                                              : "Inconclusive";
  return made;
}

}  // namespace zs::report
