// SPDX-License-Identifier: Apache-2.0
// Columns of one's own: those that zs-aggregate was asked to summarise.
#include <cmath>
#include <sstream>

#include "base/number.hpp"
#include "plot/figures.hpp"
#include "report/batch.hpp"

namespace zs::report {
namespace {

/// A figure of the summary; "-" if it has none.
Cell cell(const metric::Table& summary, const std::string& name, std::size_t row) {
  const metric::Column* const column = summary.find(name);
  if (!column || column->type() == metric::Type::text || column->absent(row)) return {Text("-")};
  const double value = column->real(row);
  return {Text(std::isfinite(value) ? to_rounded_text(value, 6) : to_text(value)), value};
}

}  // namespace

std::vector<std::string> own_columns(const metric::Store& store) {
  std::vector<std::string> names;
  const auto found = store.attributes.find("columns");
  if (found == store.attributes.end() || !store.summary) return names;
  std::istringstream list(found->second);
  for (std::string name; std::getline(list, name, ',');) {
    if (store.summary->find(name + ".last")) names.push_back(name);
  }
  return names;
}

Section columns_section(const metric::Store& store, const Findings& found) {
  Section section{"Further columns", {}};
  section.blocks.emplace_back(
      Paragraph{"These are the further columns that --columns named. For several runs, first, last and mean "
                "are means over the runs, and the 95 % interval of the mean comes from their spread."});
  for (const std::string& name : own_columns(store)) {
    plot::Options options;
    options.value = name;
    section.blocks.emplace_back(Picture{"column_" + name, name + " over the steps, a curve for each condition",
                                        plot::curve_figure(found.conditions, options)});
    Grid grid{name, {"condition", "first", "last", "min", "max", "mean", "mean from", "to"}, {}, {}};
    grid.numeric.assign(grid.header.size(), true);
    grid.numeric[0] = false;
    for (const Condition& condition : found.conditions) {
      std::vector<Cell> row = {{Text(code(condition.name)), static_cast<double>(condition.place)}};
      for (const char* const what : {".first", ".last", ".min", ".max", ".mean", ".low", ".high"})
        row.push_back(cell(*store.summary, name + what, condition.place));
      grid.rows.push_back(std::move(row));
    }
    section.blocks.emplace_back(std::move(grid));
  }
  return section;
}

}  // namespace zs::report
