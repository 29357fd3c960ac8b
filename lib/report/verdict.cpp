// SPDX-License-Identifier: Apache-2.0
// The first paragraph of a batch's report.
#include <algorithm>
#include <cmath>

#include "base/number.hpp"
#include "report/batch.hpp"

namespace zs::report {
namespace {

constexpr std::size_t kDigestsShown = 3;  // more of them would hide the sentence

std::string all_of(std::size_t count, const std::string& noun) {
  if (count == 1) return "The one " + noun;
  if (count == 2) return "Both " + noun + "s";
  return "All " + counted(count, noun);
}

/// "z2 FAILED (exit code 9) at step 30 of 100" for each bad condition.
Text failures(const Findings& found) {
  Text text = bad(std::to_string(found.bad.size()) + " of " + counted(found.conditions.size(), "condition") +
                  " did not complete: ");
  for (std::size_t i = 0; i < found.bad.size(); ++i) {
    if (i > 0) text += i + 1 == found.bad.size() ? " and " : ", ";
    text += code(found.bad[i]->name) + Text(" " + status_text(*found.bad[i]));
  }
  return text += ". ";
}

/// "a and c end with X; b ends with Y", or how many there are where the list would hide the sentence.
Text listed(const DigestClass& one) {
  if (one.groups.size() > kDigestsShown) {
    return Text("they end with " + counted(one.groups.size(), "different state digest") + " (listed in the appendix)");
  }
  Text text;
  for (const DigestGroup& group : one.groups) {
    text += Text(text.empty() ? "" : "; ") + names(group.members) +
            Text(group.members.size() == 1 ? " ends with " : " end with ") + code(group.digest);
  }
  return text;
}

/// "seed 1, number format bfloat16": what makes a class, of that on which classes differ.
std::string made_by(const DigestClass& one, const Findings& found) {
  std::string text;
  for (const attribute::Difference& difference : found.unlike) {
    const attribute::Facts& facts = difference.role == attribute::Role::decides ? one.decides : one.arithmetic;
    const auto value = facts.find(difference.name);
    text += (text.empty() ? "" : ", ") + std::string(attribute::label(difference.name)) + " " +
            (value == facts.end() ? "not said" : value->second);
  }
  return text;
}

/// Each class with several digests: "with seed 1, a ends with X; b ends with Y".
Text groups(const Findings& found) {
  Text text;
  for (const DigestClass& one : found.digests) {
    if (one.groups.size() < 2) continue;
    text += Text(text.empty() ? "" : "; ") +
            (found.digests.size() > 1 ? Text("with " + made_by(one, found) + ", ") : Text()) + listed(one);
  }
  return text += ".";
}

Text where_losses_differ(const Findings& found) {
  if (found.losses.first_step)
    return " Losses first differ at step " + to_text(*found.losses.first_step) + "; zs-verify names the place.";
  return found.losses.equal ? " Yet the losses are equal at every logged step." : "";
}

/// Runs of different trainings or arithmetics that end with the same bits: what they differ in changed nothing.
Text shared(const Findings& found) {
  Text text;
  for (const DigestGroup& group : found.shared) {
    if (group.members.size() < 2) continue;
    text += Text(" Yet ") + names(group.members) + Text(" end with the same state digest, ") + code(group.digest) +
            Text(": what they differ in changed no bit.");
  }
  return text;
}

/// "a and b" or "The conditions", as the beginning of a sentence about what differs.
Text both(const Findings& found) { return found.healthy.size() == 2 ? names(found.healthy) : Text("The conditions"); }

/// Every run has what it trains, or its arithmetic, to itself.
Text unlike(const Findings& found) {
  return both(found) + Text(" " + attribute::reason(found.unlike) + ". Their state digests are not compared.") +
         shared(found);
}

/// All runs with a digest train the same thing and end with the same bits.
Text same(const Findings& found) {
  const std::size_t with = found.healthy.size() - found.without_digest.size();
  const bool all = found.without_digest.empty();
  Text text;
  if (all && found.bad.empty() && with == 1)
    text += strong("All " + counted(found.digests[0].runs, "run") + " end with the same state digest");
  else if (all && found.bad.empty())
    text += strong(all_of(with, "condition") + " end with the same state digest");
  else if (all && with > 1)
    text += strong(all_of(with, "condition") + " that did not fail end with the same state digest");
  else
    text += strong(counted(with, "condition") + " of " + std::to_string(found.healthy.size()) +
                   " that did not fail end with the same state digest");
  return text += Text(", ") + code(found.digests[0].groups[0].digest) +
                 Text(": their parameters are the same to the last bit.");
}

/// Too few digests to compare.
Text too_few(const Findings& found) {
  const std::size_t with = found.healthy.size() - found.without_digest.size();
  if (with == 1 && found.healthy.size() == 1 && found.bad.empty()) {
    return code(found.healthy[0]->name) + Text(" ends with the state digest ") +
           code(found.digests[0].groups[0].digest) + Text("; there is no other condition to compare it with.");
  }
  if (found.healthy.size() < 2) return {};
  return Text(with == 0 ? "No condition logged a state digest" : "Only one condition logged a state digest") +
         Text(", so whether the parameters are the same bits cannot be told.");
}

/// The digests of the healthy conditions.
Text digests(const Findings& found, Verdict& verdict) {
  if (found.digests_differ()) {
    verdict = Verdict::bad;
    return bad("Runs that train the same thing do not end with the same bits: ") + groups(found) +
           where_losses_differ(found);
  }
  if (found.digests_unjudged()) {
    return Text(
               "State digests differ, but the records do not say which model was trained, so whether the runs train "
               "the same thing is not known: ") +
           groups(found) + where_losses_differ(found);
  }
  if (!found.digests_compared()) return found.digests.size() > 1 ? unlike(found) : too_few(found);
  Text text;
  std::size_t alone = 0;
  if (found.digests.size() == 1) {
    text = same(found);
  } else {
    for (const DigestClass& one : found.digests) alone += one.runs == 1;
    text = strong("Runs that train the same thing end with the same state digest") +
           Text(", and so with the same bits: " + counted(found.digests.size(), "group") + " that differ in " +
                attribute::text(found.unlike) +
                (alone > 0 ? ", of which " + std::to_string(alone) + " with a single run." : ".")) +
           shared(found);
  }
  if (!found.without_digest.empty())
    text += Text(" ") + names(found.without_digest) +
            Text(found.without_digest.size() == 1 ? " has no digest." : " have no digest.");
  else if (alone == 0 && verdict == Verdict::open)
    verdict = Verdict::good;
  return text;
}

/// What the losses say where the digests cannot.
Text losses(const Findings& found) {
  const Losses& all = found.losses;
  if (found.healthy.size() < 2) return {};
  if (!all.compared) return " The summary does not compare the losses (make it with zs-aggregate).";
  if (all.pairs == 0) {
    return all.with_first_alone ? " No condition has a loss at a step of the first one, so losses are not compared."
                                : " No two conditions have a loss at the same step, so losses cannot be compared.";
  }
  Text text;
  if (all.equal)
    text = " Their losses are equal, as logged, at every one of " + counted(all.fewest_steps, "step") + ".";
  else if (!all.largest)
    text = Text(" Their losses are equal at the steps that two of them share, ") +
           Text(counted(all.fewest_steps, "step") + " or more.");
  if (all.apart > 0)
    text += " " + counted(all.apart, "pair") + " of conditions " + (all.apart == 1 ? "shares" : "share") +
            " no step with a loss.";
  if (!all.largest) return text;
  const Losses::Largest& most = *all.largest;
  text += Text(" At the same step the losses differ by up to ") +
          Text(std::isfinite(most.difference) ? strong(loss_text(most.difference) + " nats/token")
                                              : bad("more than any number (one is not finite)")) +
          Text(" (step " + to_text(most.step) + ": ") + code(most.a->name) + Text(" " + loss_text(most.loss_a) + ", ") +
          code(most.b->name) + Text(" " + loss_text(most.loss_b) + ")");
  if (!found.envelope) return text += "; with one run of each condition nothing here tells noise from a fault.";
  if (found.outside.empty()) {
    return text += ", no more than repeated runs of one condition do (" + loss_text(*found.envelope) +
                   " nats/token): that is within their noise.";
  }
  text += ", and ";
  for (std::size_t i = 0; i < std::min<std::size_t>(found.outside.size(), 3); ++i) {
    text += Text(i > 0 ? ", " : "") + code(found.outside[i].condition) + Text(" leaves ") +
            code(found.outside[i].baseline) + Text(" at step " + to_text(found.outside[i].step));
  }
  if (found.outside.size() > 3) text += " and " + std::to_string(found.outside.size() - 3) + " more pairs part";
  return text += " by more than repeated runs of one condition do (" + loss_text(*found.envelope) + " nats/token).";
}

std::string label(const Findings& found, Verdict verdict) {
  if (!found.bad.empty()) return found.digests_differ() ? "Not complete, and different bits" : "Not complete";
  if (found.digests_differ()) return "Different bits";
  if (verdict == Verdict::good) return "Same bits";
  if (found.conditions.size() == 1) return found.unknown.empty() ? "Complete" : "Not known to be complete";
  if (!found.unlike.empty() && !found.digests_compared()) {
    return attribute::expected_bits(found.unlike) == attribute::Bits::other_training ? "Not the same training"
                                                                                     : "Not the same arithmetic";
  }
  if (found.digests_compared() && !found.digests_unjudged() && found.without_digest.empty())
    return found.unknown.empty() ? "Same bits where the training is the same" : "Same bits, not known to be complete";
  return "Bits not known";
}

}  // namespace

Text bits_sentence(const Findings& found) {
  Verdict ignored = Verdict::open;
  return digests(found, ignored);
}

void write_verdict(const Findings& found, Document& document) {
  document.verdict = found.bad.empty() ? Verdict::open : Verdict::bad;
  if (!found.bad.empty()) document.verdict_text += failures(found);
  if (found.healthy.empty()) {
    document.verdict_text += "Nothing can be compared.";
    document.label = label(found, document.verdict);
    return;
  }
  document.verdict_text += digests(found, document.verdict);
  if (!found.digests_differ() && !found.without_digest.empty()) document.verdict_text += losses(found);
  if (!found.unknown.empty()) {
    if (document.verdict == Verdict::good) document.verdict = Verdict::open;
    document.verdict_text += Text(" Whether ") +
                             Text(found.unknown.size() == found.conditions.size() ? "they are" : "") +
                             (found.unknown.size() == found.conditions.size()
                                  ? Text()
                                  : names(found.unknown) + Text(found.unknown.size() == 1 ? " is" : " are")) +
                             Text(" complete is not known: the records do not say how many steps were expected.");
  } else if (document.verdict_text.empty()) {
    document.verdict_text = code(found.healthy[0]->name) + Text(" completed.");
  }
  document.label = label(found, document.verdict);
}

}  // namespace zs::report
