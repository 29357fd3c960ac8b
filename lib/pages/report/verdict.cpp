// SPDX-License-Identifier: Apache-2.0
// The first paragraph of a batch's report.
#include <algorithm>
#include <cmath>

#include "base/number.hpp"
#include "report/batch.hpp"
#include "stat/work.hpp"

namespace zs::report {
namespace {

constexpr std::size_t kDigestsShown = 3;  // more of them would hide the sentence

/// "z2 FAILED (exit code 9) at step 30 of 100" for each bad condition.
Text failures(const Findings& found) {
  std::vector<Text> each;
  for (const Condition* const one : found.bad) each.push_back(say("{} {}", code(one->name), status_text(*one)));
  return found.conditions.size() == 1 ? say("{}.", each[0]) : say("{}{}.", bad(failed_count(found)), joined(each));
}

/// "a and c end with X; b ends with Y", or how many there are if the list would hide the sentence.
Text listed(const DigestClass& one) {
  if (one.groups.size() > kDigestsShown)
    return say("they end with {} (listed in the appendix)", counted(one.groups.size(), "different state digest"));
  std::vector<Text> each;
  for (const DigestGroup& group : one.groups) {
    const char* const end = group.members.size() == 1 ? "{} ends with {}" : "{} end with {}";
    each.push_back(say(end, names(group.members), code(group.digest)));
  }
  return joined(each, "; ", "; ");
}

/// "seed 1, number format bfloat16": what makes a class, of that on which classes differ.
Text made_by(const DigestClass& one, const Findings& found) {
  std::vector<Text> each;
  for (const attribute::Difference& difference : found.unlike) {
    const attribute::Facts& facts = difference.role == attribute::Role::decides ? one.decides : one.arithmetic;
    const auto value = facts.find(difference.name);
    each.push_back(say("{} {}", std::string(attribute::label(difference.name)),
                       value == facts.end() ? "not recorded" : value->second));
  }
  return joined(each, ", ", ", ");
}

/// The first step at which the losses of runs differ that must not: those of one class.
std::optional<std::int64_t> first_apart(const Findings& found) {
  std::optional<std::int64_t> first;
  for (const summary::Pair& pair : found.losses.differing) {
    const auto of_pair = [&](const Condition* one) {
      return one->name == pair.condition || one->name == pair.baseline;
    };
    for (const DigestClass& one : found.digests) {
      const auto apart = std::ranges::count_if(
          one.groups, [&](const DigestGroup& group) { return std::ranges::any_of(group.members, of_pair); });
      if (one.known() && apart > 1) first = std::min(first.value_or(INT64_MAX), *pair.first_difference);
    }
  }
  return first;
}

/// Each class with several digests: "with seed 1, a ends with X; b ends with Y", and where the losses diverge.
Text differing(const Findings& found) {
  std::vector<Text> each;
  for (const DigestClass& one : found.digests) {
    if (one.groups.size() < 2) continue;
    each.push_back(found.digests.size() > 1 ? say("with {}, {}", made_by(one, found), listed(one)) : listed(one));
  }
  Text text = say("{}.", joined(each, "; ", "; "));
  if (const std::optional<std::int64_t> step = first_apart(found))
    text += say(" Losses first differ at step {}; zs-verify names the place.", to_text(*step));
  else if (found.losses.equal)
    text += " Yet the losses are equal at every logged step.";
  return text;
}

/// Runs of different trainings or arithmetics that end with the same bits: what they differ in changed nothing.
Text shared(const Findings& found) {
  Text text;
  for (const DigestGroup& group : found.shared) {
    if (group.members.size() < 2) continue;
    text += say(" Yet {} end with the same state digest, {}: what they differ in changed no bit.", names(group.members),
                code(group.digest));
  }
  return text;
}

/// All runs with a digest train the same thing and end with the same bits.
Text same(const Findings& found) {
  const std::size_t with = found.healthy.size() - found.without_digest.size();
  const bool complete = found.without_digest.empty();
  const std::string who = complete && found.bad.empty() && with == 1 ? "All " + counted(found.digests[0].runs, "run")
                          : complete && found.bad.empty()            ? all_counted(with, "condition")
                          : complete && with > 1 ? all_counted(with, "condition") + " that did not fail"
                                                 : counted(with, "condition") + " of " +
                                                       std::to_string(found.healthy.size()) + " that did not fail";
  return say("{}, {}: their parameters are the same to the last bit.", strong(who + " end with the same state digest"),
             code(found.digests[0].groups[0].digest));
}

Text too_few(const Findings& found) {
  const std::size_t with = found.healthy.size() - found.without_digest.size();
  if (with == 1 && found.healthy.size() == 1 && found.bad.empty())
    return say("It ends with the state digest {}.", code(found.digests[0].groups[0].digest));
  if (found.healthy.size() < 2 || (with == 0 && found.recorded_equal())) return {};
  return say("{} logged a state digest, so the report cannot say whether the parameters are the same bits.",
             with == 0 ? "No condition" : "Only one condition");
}

/// The digests of the healthy conditions.
Text digests(const Findings& found, Verdict& verdict) {
  if (found.digests_differ()) {
    verdict = Verdict::bad;
    return say("{}{}", bad("Runs that train the same thing do not end with the same bits: "), differing(found));
  }
  if (found.digests_unjudged()) {
    return say(
        "State digests differ, but the records do not say which model was trained, so whether the runs train the same "
        "thing is not known: {}",
        differing(found));
  }
  if (!found.digests_compared() && found.digests.size() > 1) {
    return say("{} {}. Their state digests are not compared.{}",
               found.healthy.size() == 2 ? names(found.healthy) : Text("The conditions"),
               attribute::reason(found.unlike), shared(found));
  }
  if (!found.digests_compared()) return too_few(found);
  Text text;
  std::size_t alone = 0;
  if (found.digests.size() == 1) {
    text = same(found);
  } else {
    for (const DigestClass& one : found.digests) alone += one.runs == 1;
    text = say("{}, and so with the same bits: {} that differ in {}{}{}",
               strong("Runs that train the same thing end with the same state digest"),
               counted(found.digests.size(), "group"), attribute::text(found.unlike),
               alone > 0 ? ", of which " + std::to_string(alone) + " with a single run." : ".", shared(found));
  }
  if (!found.without_digest.empty())
    text += say(found.without_digest.size() == 1 ? " {} has no digest." : " {} have no digest.",
                names(found.without_digest));
  else if (alone == 0 && verdict == Verdict::open)
    verdict = Verdict::good;
  return text;
}

/// The step at which the losses of conditions diverge, and by how much.
Text largest_difference(const Findings& found) {
  const summary::Losses::Largest& most = *found.losses.largest;
  if (found.losses.printed) return loss_sentence(found);
  Text text =
      say("At the same step the losses differ by up to {} (step {}: {} {}, {} {})",
          std::isfinite(most.difference) ? strong(loss_text(most.difference, most.a->loss_unit))
                                         : bad("more than any number (one is not finite)"),
          to_text(most.step), code(most.a->name), loss_text(most.loss_a), code(most.b->name), loss_text(most.loss_b));
  if (!found.losses.envelope)
    return text +=
           found.recorded_equal() ? "." : "; with one run of each condition nothing here tells noise from a fault.";
  if (found.losses.outside.empty()) {
    return text += say(", and by no more than chance makes of repeated runs, which differ by up to {}.",
                       loss_text(*found.losses.envelope, most.a->loss_unit));
  }
  std::vector<Text> each;
  for (const summary::Pair& one : found.losses.outside) {
    if (each.size() == 3) break;
    each.push_back(say("{} leaves {} at step {}{}", code(one.condition), code(one.baseline),
                       to_text(*one.first_outside), beside_repeats(one, most.a->loss_unit)));
  }
  const std::size_t more = found.losses.outside.size() - each.size();
  return text += say(". More than chance makes of repeated runs: {}{}.", joined(each, ", ", ", "),
                     more > 0 ? " and " + std::to_string(more) + " more pairs part" : "");
}

/// The conclusion from the losses if the digests do not decide.
Text losses(const Findings& found) {
  const summary::Losses& losses = found.losses;
  if (found.healthy.size() < 2) return {};
  if (!losses.compared) return "The summary does not compare the losses (make it with zs-aggregate).";
  if (losses.pairs == 0) {
    return losses.with_first_alone ? "No condition has a loss at a step of the first one, so losses are not compared."
                                   : "No two conditions have a loss at the same step, so losses cannot be compared.";
  }
  std::vector<Text> each;
  if (losses.equal)
    each.push_back(say("Their losses are equal, as logged, at every one of {}.", counted(losses.fewest_steps, "step")));
  else if (!losses.largest && losses.first_step)
    each.push_back(loss_sentence(found));
  else if (!losses.largest)
    each.push_back(say("Their losses are equal at the steps that two of them share, {} or more.",
                       counted(losses.fewest_steps, "step")));
  if (losses.apart > 0)
    each.push_back(say("{} of conditions {} no step with a loss.", counted(losses.apart, "pair"),
                       losses.apart == 1 ? "shares" : "share"));
  if (losses.largest) each.push_back(largest_difference(found));
  return joined(each, " ", " ");
}

std::string label(const Findings& found, Verdict verdict) {
  if (!found.bad.empty()) return found.digests_differ() ? "Not complete, and different bits" : "Not complete";
  if (found.digests_differ()) return "Different bits";
  if (found.conditions.size() == 1) return found.unknown.empty() ? "Complete" : "Not known to be complete";
  if (verdict == Verdict::good) return "Same bits";
  if (!found.unlike.empty() && !found.digests_compared()) {
    return attribute::expected_bits(found.unlike) == attribute::Bits::other_training ? "Not the same training"
                                                                                     : "Not the same arithmetic";
  }
  if (found.digests_compared() && !found.digests_unjudged() && found.without_digest.empty())
    return found.unknown.empty() ? "Same bits where the training is the same" : "Same bits, not known to be complete";
  if (!found.digests.empty()) return "Bits not known";
  const summary::Losses& losses = found.losses;
  if (found.mixed()) return found.outliers.empty() ? "Several kinds of runs" : "Some runs stand out";
  return losses.equal        ? "Equal losses"
         : losses.printed    ? "Losses equal up to the rounding of their print"
         : losses.first_step ? "Losses differ"
         : losses.pairs > 0  ? "Equal losses where both have them"
                             : "Losses not comparable";
}

/// "Stands out among like runs: ..." from the outliers of zs-aggregate.
Text standing_out(const Findings& found) {
  constexpr std::size_t kMost = 8;
  if (found.outliers.empty()) return {};
  std::vector<Text> each(found.outliers.begin(), found.outliers.end());
  const std::size_t more = each.size() > kMost ? each.size() - kMost : 0;
  if (more > 0) each.resize(kMost), each.emplace_back(std::to_string(more) + " more in the table below");
  return say("{}{}.", strong("Among like runs stand out: "), joined(each, "; ", "; "));
}

/// The kinds of runs, if no sentence is about all of them.
Text kinds(const Findings& found) {
  constexpr std::size_t kMost = 6;
  std::vector<const stat::Alike*> order;
  for (const stat::Alike& one : found.kinds) order.push_back(&one);
  std::ranges::stable_sort(order, [](const auto* a, const auto* b) { return a->runs.size() > b->runs.size(); });
  std::vector<Text> each;
  for (std::size_t i = 0; i < std::min(kMost, order.size()); ++i)
    each.push_back(say("{} ({})", code(order[i]->label), std::to_string(order[i]->runs.size())));
  if (order.size() > kMost) each.emplace_back(std::to_string(order.size() - kMost) + " more");
  const std::string untimed = shares_of_kinds(found, [](const Condition& one) {
    return !one["time_mean"] && !one["tokens_per_second"] && !one["images_per_second"] &&
           std::ranges::none_of(one.members, [](const summary::Member& member) {
             return stat::logged_rate(*member.run, true) > 0 || stat::logged_rate(*member.run, false) > 0;
           });
  });
  return say("The runs are of {}: {}; those of different kinds are not compared.{}", counted(order.size(), "kind"),
             joined(each), untimed.empty() ? "" : " Neither time nor throughput is known of " + untimed + ".");
}

/// For logs without state digests: the data that they have come first.
Text without_digests(const Findings& found) {
  if (found.mixed()) return kinds(found);
  std::vector<Text> each = {losses(found)};
  if (found.time.compared > 1) each.push_back(time_sentence(found));
  if (found.memory.compared > 1) each.push_back(memory_sentence(found));
  each.push_back(too_few(found));
  return joined(each, " ", " ");
}

}  // namespace

Text bits_sentence(const Findings& found) {
  Verdict ignored = Verdict::open;
  return digests(found, ignored);
}

void write_verdict(const Findings& found, Document& document) {
  document.verdict = found.bad.empty() ? Verdict::open : Verdict::bad;
  std::vector<Text> said;
  if (!found.bad.empty()) said.push_back(failures(found));
  said.push_back(standing_out(found));
  if (found.healthy.empty()) {
    if (found.conditions.size() > 1) said.emplace_back("Nothing can be compared.");
  } else if (found.digests.empty() && found.healthy.size() > 1) {
    said.push_back(without_digests(found));
  } else {
    said.push_back(digests(found, document.verdict));
    if (!found.digests_differ() && !found.without_digest.empty()) said.push_back(losses(found));
  }
  if (!found.unknown.empty()) {
    if (document.verdict == Verdict::good) document.verdict = Verdict::open;
    said.push_back(say("Whether {} complete is not known: the records do not say how many steps were expected.",
                       found.unknown.size() == found.conditions.size() ? Text("they are")
                       : found.mixed()                                 ? say("{} are", shares_of_kinds(found,
                                                                                                       [&](const Condition& one) {
                                                                         return std::ranges::find(found.unknown,
                                                                                                                                  &one) !=
                                                                                found.unknown.end();
                                                                       }))
                                       : say(found.unknown.size() == 1 ? "{} is" : "{} are", names(found.unknown))));
  }
  if (found.conditions.size() == 1) {
    const Condition& one = found.conditions[0];
    const bool complete = found.bad.empty() && found.unknown.empty();
    if (complete) document.verdict = Verdict::good;
    const std::string steps = one["final_step"] ? " " + std::to_string(one.count("final_step")) + " steps" : "";
    const Text first = one.bad() ? Text() : say("{} {}{}.", code(one.name), complete ? "completed" : "logged", steps);
    said.insert(one.bad() ? said.end() : said.begin(),
                {first, loss_sentence(found), time_sentence(found), memory_sentence(found)});
  }
  std::erase_if(said, [](const Text& one) { return one.empty(); });
  document.verdict_text = joined(said, " ", " ");
  document.label = label(found, document.verdict);
}

}  // namespace zs::report
