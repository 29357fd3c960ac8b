// SPDX-License-Identifier: Apache-2.0
#include "report/probes.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/number.hpp"
#include "base/words.hpp"
#include "probe/answer.hpp"
#include "probe/checks.hpp"
#include "report/pages.hpp"
#include "rollout/recording.hpp"

namespace zs::report {
namespace {

constexpr std::size_t kMostRows = 40, kMostColumns = 32;

/// A module's block: its name up to the first number in it, "blocks.3".
std::string block_of(const std::string& module) {
  for (std::size_t at = 0; at < module.size();) {
    const std::size_t end = std::min(module.find('.', at), module.size());
    if (end > at &&
        std::all_of(module.begin() + static_cast<std::ptrdiff_t>(at), module.begin() + static_cast<std::ptrdiff_t>(end),
                    [](char c) { return c >= '0' && c <= '9'; }))
      return module.substr(0, end);
    at = end + 1;
  }
  return module;
}

/// Modules down, joined to blocks if there are many; steps across, several to a column if there are many.
figure::Figure map_of(const probe::Map& map) {
  const bool blocks = map.order.size() > kMostRows;
  const auto row_of = [&](const std::string& module) { return blocks ? block_of(module) : module; };
  figure::Panel panel;
  for (const std::string& module : map.order) {
    const std::string row = row_of(module);
    if (std::ranges::find(panel.rows, row) == panel.rows.end()) panel.rows.push_back(row);
  }
  std::set<std::int64_t> steps_seen;
  for (const auto& [module, steps] : map.modules) {
    for (const auto& [step, ratio] : steps) steps_seen.insert(step);
  }
  const std::vector<std::int64_t> steps(steps_seen.begin(), steps_seen.end());
  const std::size_t each = (steps.size() + kMostColumns - 1) / kMostColumns;
  std::map<std::int64_t, std::size_t> columns;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    columns[steps[i]] = i / each;
    if (i % each == 0) panel.columns.push_back(to_text(steps[i]));
  }
  std::map<std::pair<std::size_t, std::size_t>, double> most;
  for (const auto& [module, ratios] : map.modules) {
    const auto row = static_cast<std::size_t>(std::ranges::find(panel.rows, row_of(module)) - panel.rows.begin());
    for (const auto& [step, ratio] : ratios) {
      double& here = most[{row, columns[step]}];
      here = std::max(here, ratio);
    }
  }
  double least = 1;  // what is equal is a decade below what differs least
  for (const auto& [place, ratio] : most) least = ratio > 0 ? std::min(least, ratio) : least;
  for (const auto& [place, ratio] : most) {
    figure::Cell cell;
    cell.row = place.first, cell.column = place.second;
    cell.value = std::log10(ratio > 0 ? ratio : least / 10);
    cell.label = ratio == 0                     ? "0"
                 : ratio >= 1e4 || ratio < 1e-3 ? "1e" + to_text(std::lround(std::log10(ratio)))
                                                : to_rounded_text(ratio, 2);
    panel.cells.push_back(std::move(cell));
  }
  panel.x_label = "step";
  panel.y_label = blocks ? "block" : "module";
  panel.reference = 0;  // log10 of the bound itself
  panel.key = "red: more than rounding";
  panel.notes.emplace_back(
      "each cell: the largest distance, divided by the bound of rounding; above 1 is more than rounding");
  if (each > 1) panel.notes.push_back("a column has " + to_text(static_cast<std::int64_t>(each)) + " steps");
  return {"Distance divided by the bound of rounding", {std::move(panel)}};
}

figure::Figure curves_of(const probe::Map& map) {
  static const std::map<std::string, std::string> kNames = {{"grad", "gradients"},   {"direction", "directions"},
                                                            {"update", "updates"},   {"model", "copies"},
                                                            {"param", "parameters"}, {"output", "outputs"}};
  figure::Panel panel;
  std::size_t hue = 0;
  const auto is_equal = [](const auto& place) {
    return std::ranges::all_of(place.second, [](const auto& one) { return !(one.second > 0); });
  };
  const bool all_equal = std::ranges::all_of(map.places, is_equal);
  for (const auto& [place, steps] : map.places) {
    if (!all_equal && is_equal(std::pair(place, steps))) continue;  // a logarithmic axis has no place for zero
    figure::Series series;
    const auto name = kNames.find(place);
    series.name = name == kNames.end() ? place : name->second;
    series.colour = figure::Ink(hue++);
    for (const auto& [step, ratio] : steps) {
      series.x.push_back(static_cast<double>(step));
      series.y.push_back(ratio > 0 ? ratio : figure::kNone);
    }
    panel.series.push_back(std::move(series));
  }
  std::set<std::int64_t> taken;
  for (const auto& [place, steps] : map.places) {
    for (const auto& [step, ratio] : steps) taken.insert(step);
  }
  if (taken.size() <= 12) panel.x_ticks.assign(taken.begin(), taken.end());
  panel.log_y = true;
  panel.reference = 1;
  panel.notes.emplace_back("red line: the bound; above it is more than rounding");
  panel.x_label = "step", panel.y_label = "distance divided by the bound";
  return {"The largest distance at each step, divided by the bound", {std::move(panel)}};
}

}  // namespace

Grid details(const compare::AnswerLines& lines) {
  Grid grid{"All that zs-verify says", {"what", "value"}, {false, false}, {}};
  for (const auto& [key, value] : lines) {
    std::string name = key;
    if (name.find('/') == name.npos) std::ranges::replace(name, '_', ' ');  // no name of a metric
    grid.rows.push_back({{Text(name)}, {Text(value)}});
  }
  return grid;
}

/// Why two recordings are equal: their largest distance, or that no bit differs, and what one of them lacks.
static std::string likeness(const probe::Answer& answer) {
  constexpr std::string_view kRounding = "rounding: ";  // the sentence says it already
  const std::string kind = answer.line({"kind"}), left = answer.line({"missing", "not compared"});
  if (!kind.empty()) return kind.substr(kind.starts_with(kRounding) ? kRounding.size() : 0);
  return "all bits of " + answer.line({"tensors_compared"}) + " tensors are the same" +
         (left.empty() ? "" : "; not compared: " + left);
}

Document probes(const std::string& a, const std::string& b) {
  const probe::Answer answer = probe::compare(a, b, {});
  const std::string verdict = answer.line({"verdict"}), headline = answer.line({"headline"});
  Document document;
  const auto name = [](const std::string& path) { return std::filesystem::path(path).filename().string(); };
  document.title = name(a) == name(b) || name(a).empty() || name(b).empty() ? b + " compared with " + a
                                                                            : name(b) + " compared with " + name(a);
  document.label = verdict;
  document.verdict = answer.apart || verdict == "FAILED"                       ? Verdict::bad
                     : verdict == "exact" || verdict == "equal up to rounding" ? Verdict::good
                                                                               : Verdict::open;
  if (!headline.empty())
    document.verdict_text = say("{}.", bad(headline));
  else if (document.verdict == Verdict::good)
    document.verdict_text =
        say("{}: {}.", strong(verdict == "exact" ? "There is no difference" : "No difference is beyond rounding"),
            likeness(answer));
  else
    document.verdict_text =
        say("{}.", verdict + (answer.line({"failure"}).empty() ? "" : ": " + answer.line({"failure"})));
  document.verdict_text +=
      say(" A is {} ({}), B is {} ({}); {} were compared.", code(a), answer.line({"layout_a"}), code(b),
          answer.line({"layout_b"}), counted(static_cast<std::size_t>(answer.steps), "step"));
  Section section{"Where they differ", {}};
  if (!answer.map.modules.empty()) {
    section.blocks.emplace_back(Picture{"map", "the largest distance of each module at each step", map_of(answer.map)});
    section.blocks.emplace_back(
        Picture{"curves", "the largest distance at each step, by kind of tensor", curves_of(answer.map)});
  }
  section.blocks.emplace_back(details(answer.lines));
  document.sections.push_back(std::move(section));
  return document;
}

Document probe(const std::string& folder, bool generates) {
  std::optional<rollout::Answer> generated;
  if (generates) generated = rollout::compare(folder, "", "");
  const probe::Answer answer = rollout::check(folder, generated);
  const std::string verdict = answer.line({"verdict"}), headline = answer.line({"headline"});
  Document document;
  document.title = folder;
  document.label = verdict;
  document.verdict = verdict == "consistent" ? Verdict::good : verdict == "INCONSISTENT" ? Verdict::bad : Verdict::open;
  document.verdict_text = !headline.empty() ? say("{}.", bad(headline))
                          : document.verdict == Verdict::good
                              ? say("{}.", strong("No check found an error"))
                              : say("{}.", verdict + ": " + answer.line({"failure", "not checked"}));
  document.verdict_text += say(" {} is {}; {} were checked.", code(folder), answer.line({"layout"}),
                               counted(static_cast<std::size_t>(answer.steps), "step"));
  if (generated) document.sections.push_back(rollout_section(*generated));
  document.sections.push_back({"The checks of one recording", {details(answer.lines)}});
  return document;
}

}  // namespace zs::report
