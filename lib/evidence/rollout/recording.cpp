// SPDX-License-Identifier: Apache-2.0
#include "rollout/recording.hpp"

#include "probefile/folder.hpp"
#include "rolloutfile/form.hpp"

namespace zs::rollout {

using compare::Verdict;

void join(probe::Answer& into, const Answer& found) {
  const bool differs = found.verdict > Verdict::inconclusive;
  const bool named = !into.line({"headline"}).empty();
  if (differs || found.verdict == Verdict::inconclusive)
    into.verdict.worsen(differs ? Verdict::different : Verdict::inconclusive);
  into.apart |= differs;
  if (into.lines.empty()) into.lines.emplace_back("verdict", "");
  into.lines.front().second = compare::consistency(into.verdict);
  if (differs && !named)
    into.lines.insert(into.lines.begin() + 1, {"headline", "generator and trainer differ: " +
                                                               compare::line_of(found.lines, {"relation", "reason"})});
  for (const auto& [key, text] : found.lines) {
    const bool brief = key == "verdict" || key == "compared" || key == "difference" || key == "bound";
    if (brief || found.verdict > Verdict::rounding)
      into.lines.emplace_back(key == "verdict" ? "rollout" : "rollout " + key, text);
  }
}

probe::Answer check(const std::string& folder, const std::optional<Answer>& rollouts) {
  probe::Answer made = probe::check(folder);
  if (rollouts) join(made, *rollouts);
  return made;
}

probe::Live::Seen LiveRecording::grow() {
  probe::Live::Seen seen;
  if (!probefile::ranks_in(folder_).empty()) seen = checks_.grow(), checked_ = true;
  using Clock = std::chrono::steady_clock;
  if (rolloutfile::has_dumps(folder_)) {
    const auto now = Clock::now();
    seen.behind = behind_ = rollouts_ && now < next_;
    if (!behind_) rollouts_ = compare(folder_, "", floor_), next_ = now + 8 * (Clock::now() - now);
    seen.apart |= rollouts_->verdict > Verdict::inconclusive;
    if (!checked_)
      seen.steps = static_cast<std::int64_t>(rollouts_->curves.steps.size()), seen.ended = rollouts_->ended;
  }
  return seen;
}

probe::Answer LiveRecording::answer() {
  if (behind_) rollouts_ = compare(folder_, "", floor_);
  if (checked_) {
    probe::Answer made = checks_.answer();
    if (rollouts_) join(made, *rollouts_);
    return made;
  }
  probe::Answer made;
  made.verdict = rollouts_->verdict, made.lines = rollouts_->lines, made.ended = rollouts_->ended;
  made.apart = made.verdict > Verdict::inconclusive;
  return made;
}

}  // namespace zs::rollout
