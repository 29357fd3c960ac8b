// SPDX-License-Identifier: Apache-2.0
#include "report/batch.hpp"

namespace zs::report {
namespace {

/// If conditions were probed, the result is the first sentence: it covers every tensor of every step, while losses are
/// numbers as printed.
void write_probes(const metric::Store& store, const Findings& found, Document& document) {
  const std::string said = store.runs.empty() ? "" : store.runs.front().attribute("probe_comparison");
  if (said.empty()) return;
  const bool equal = found.recorded_equal();
  const bool other_loss = equal && found.losses.largest && !found.losses.printed;
  document.verdict_text = say("{} {}{}", equal ? strong(said + ".") : bad(said + "."), document.verdict_text,
                              other_loss ? " The logged losses differ and the recorded tensors do not: a log may have "
                                           "the loss of one rank, or of one micro-batch."
                                         : "");
  if (document.verdict == Verdict::open) document.verdict = equal ? Verdict::good : Verdict::bad;
  if (document.verdict != Verdict::bad || !equal)
    document.label = found.recordings == "exact"          ? "Same bits"
                     : equal                              ? "Equal up to rounding"
                     : found.recordings == "inconclusive" ? "Bits not known"
                                                          : "Different";
}

}  // namespace

Document batch(const metric::Store& store, const Findings& found, const std::string& source,
               const std::string& folder) {
  Document document;
  const std::string model = summary::model(found.conditions);
  const bool single = found.conditions.size() == 1;
  document.title = (single ? "Training " + found.conditions[0].name
                           : "Comparison of " + counted(found.conditions.size(), "condition")) +
                   (model.empty() ? "" : (single ? ", " : ": ") + model);
  write_verdict(found, document);
  write_probes(store, found, document);
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
