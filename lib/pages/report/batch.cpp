// SPDX-License-Identifier: Apache-2.0
#include "report/batch.hpp"

namespace zs::report {

Document batch(const metric::Store& store, const Findings& found, const std::string& source,
               const std::string& folder) {
  Document document;
  const std::string model = summary::model(found.conditions);
  const bool single = found.conditions.size() == 1;
  document.title = (single ? "Training " + found.conditions[0].name
                           : "Comparison of " + counted(found.conditions.size(), "condition")) +
                   (model.empty() ? "" : (single ? ", " : ": ") + model);
  write_verdict(found, document);
  Tracer tracer(document, folder);
  document.sections.push_back(summary_section(store, found));
  document.sections.push_back(loss_section(found, tracer));
  document.sections.push_back(performance_section(store, found, tracer));
  document.sections.push_back(memory_section(found, tracer));
  if (!own_columns(store).empty()) document.sections.push_back(columns_section(store, found));
  document.sections.push_back(setup_section(found));
  document.sections.push_back(quality_section(store, found));
  document.sections.push_back(recommendation_section(found));
  document.sections.push_back(appendix_section(store, found, source));
  return document;
}

}  // namespace zs::report
