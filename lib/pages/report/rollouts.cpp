// SPDX-License-Identifier: Apache-2.0

#include "compare/verdict.hpp"
#include "report/pages.hpp"
#include "report/probes.hpp"
#include "report/words.hpp"

namespace zs::report {
namespace {

/// A curve; where nothing is apart it has a gap, since the axis is logarithmic.
figure::Series curve(const std::string& name, std::size_t hue, const std::map<std::int64_t, double>& values) {
  figure::Series made;
  made.name = name, made.colour = figure::Ink(hue);
  for (const auto& [x, y] : values)
    made.x.push_back(static_cast<double>(x)), made.y.push_back(y > 0 ? y : figure::kNone);
  return made;
}

figure::Panel panel_of(const std::string& title, const std::string& x, const std::map<std::int64_t, double>& values,
                       double bound) {
  figure::Panel made;
  made.title = title, made.x_label = x, made.y_label = "mean |d|, nats", made.log_y = true;
  made.series.push_back(curve("generator - trainer", 0, values));
  if (values.size() <= 12) {
    for (const auto& [number, value] : values) made.x_ticks.push_back(static_cast<double>(number));
  }
  std::map<std::int64_t, double> line;
  for (const auto& [number, value] : values) line[number] = bound;
  made.series.push_back(curve("bound of rounding", 1, line));
  return made;
}

}  // namespace

Section rollout_section(const rollout::Answer& answer) {
  const rollout::Curves& curves = answer.curves;
  Section made{"Generator and trainer", {}};
  if (curves.steps.empty()) return made;
  made.blocks.emplace_back(Picture{"rollout-steps",
                                   "how far apart the log-probabilities of both sides are at each step",
                                   {"Distance at each step", {panel_of("", "step", curves.steps, curves.bound)}}});
  made.blocks.emplace_back(
      Picture{"rollout-positions",
              "the same by the token's position in its completion",
              {"Distance by position", {panel_of("", "position in the completion", curves.positions, curves.bound)}}});
  if (curves.versions.empty()) return made;
  figure::Panel panel;
  panel.x_label = "step", panel.y_label = "version of the weights";
  figure::Series series = curve("the generator's weights", 0, {});
  for (const auto& [step, range] : curves.versions) {
    series.x.push_back(static_cast<double>(step));
    series.low.push_back(static_cast<double>(range.first)), series.high.push_back(static_cast<double>(range.second));
    series.y.push_back((series.low.back() + series.high.back()) / 2);
  }
  if (series.x.size() <= 12) panel.x_ticks = series.x;
  panel.series.push_back(std::move(series));
  panel.notes.emplace_back("the band has all versions that made tokens of the step");
  made.blocks.emplace_back(Picture{"rollout-versions",
                                   "which weights the generator had at each step",
                                   {"Versions at each step", {std::move(panel)}}});
  return made;
}

Document rollouts(const std::string& a, const std::string& b) {
  const rollout::Answer answer = rollout::compare(a, b, "");
  const auto line = [&](const std::string& key) { return compare::line_of(answer.lines, {key}); };
  Document document;
  document.title = b.empty() ? a : a + " compared with " + b;
  document.label = line("verdict");
  document.verdict = answer.verdict > compare::Verdict::inconclusive    ? Verdict::bad
                     : answer.verdict == compare::Verdict::inconclusive ? Verdict::open
                                                                        : Verdict::good;
  document.verdict_text =
      document.verdict == Verdict::good ? say("{}.", strong("The generator is the model that is trained"))
      : document.verdict == Verdict::open
          ? say("{}: {}.", document.label, line("reason"))
          : say("{}.",
                bad("Generator and trainer differ: " + (line("relation").empty() ? line("reason") : line("relation"))));
  document.verdict_text += say(" {}; {}.", line("compared"), line("difference"));
  Section section = rollout_section(answer);
  section.blocks.emplace_back(details(answer.lines));
  document.sections.push_back(std::move(section));
  return document;
}

}  // namespace zs::report
