// SPDX-License-Identifier: Apache-2.0
#include "report/pages.hpp"

#include <algorithm>

#include "base/number.hpp"
#include "base/words.hpp"
#include "plot/trace.hpp"
#include "trace/analysis.hpp"

namespace zs::report {
namespace {

/// A table of an analysis, as people read it: long numbers to six digits, names as code.
Grid grid_of(const trace::Analysis& analysis, const Sheet& answer) {
  Grid grid;
  grid.title =
      std::string(1, static_cast<char>(std::toupper(analysis.what.front()))) + std::string(analysis.what.substr(1));
  grid.header = answer.header;
  std::replace_if(
      grid.header.begin(), grid.header.end(), [](const std::string& name) { return name.empty(); }, "-");
  for (std::string& name : grid.header) std::ranges::replace(name, '_', ' ');
  grid.numeric.assign(answer.header.size(), true);
  for (const auto& row : answer.rows) {
    std::vector<Cell> cells;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto value = parse_real(row[i]);
      if (!value && !row[i].empty()) grid.numeric[i] = false;
      cells.push_back(value ? Cell{Text(to_shown_text(*value, 6)), *value}
                            : Cell{row[i].empty() ? Text("-") : Text(code(row[i]))});
    }
    grid.rows.push_back(std::move(cells));
  }
  return grid;
}

}  // namespace

Section trace_section(const std::vector<trace::Trace>& traces) {
  const trace::Question question(traces);
  Section section{"Profile", {}};
  section.blocks.emplace_back(Paragraph{
      "From the traces of PyTorch's profiler of " + counted(traces.size(), "rank") +
      "; the tables have times in microseconds and memory in bytes. The last of several profiler steps is left out."});
  section.blocks.emplace_back(
      Picture{"profile", "where the time of the profiled steps went", plot::trace_figure(question)});
  for (const trace::Analysis& analysis : trace::analyses()) {
    const Sheet answer = analysis.run(question, trace::Settings().most);
    if (!answer.rows.empty()) section.blocks.emplace_back(grid_of(analysis, answer));
  }
  return section;
}

Document trace(const std::vector<trace::Trace>& traces) {
  Document document;
  document.title = "Profile of " + counted(traces.size(), "rank");
  document.label = "Profiled";
  std::size_t events = 0, steps = 0;
  for (const trace::Trace& one : traces) {
    events += static_cast<std::size_t>(one.read);
    steps = std::max(steps, one.steps.size());
  }
  document.verdict_text = say("{} of {}, {}.", strong(counted(events, "event")), counted(traces.size(), "rank"),
                              steps == 0 ? "in no profiler step" : counted(steps, "profiler step"));
  document.sections.push_back(trace_section(traces));
  return document;
}

}  // namespace zs::report
