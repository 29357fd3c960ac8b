// SPDX-License-Identifier: Apache-2.0
// The report of a batch: several conditions of one training.
#pragma once
#include <string>

#include "metric/table.hpp"
#include "report/document.hpp"
#include "report/findings.hpp"
#include "report/words.hpp"

namespace zs::report {

/// Every sentence is computed from `found` and `store`. `folder`
/// is the folder of the report, `source` names the input.
Document batch(const metric::Store& store, const Findings& found, const std::string& source, const std::string& folder);

/// The sections, each in a separate source file.
void write_verdict(const Findings& found, Document& document);
Section summary_section(const metric::Store& store, const Findings& found);
/// With `differences`, includes a table of the differences between the conditions.
Section setup_section(const Findings& found, bool differences = true);
Section loss_section(const Findings& found, Tracer& tracer);
Section performance_section(const metric::Store& store, const Findings& found, Tracer& tracer);
Section memory_section(const Findings& found, Tracer& tracer);
/// The additional columns of the summary; see zs-aggregate --columns.
std::vector<std::string> own_columns(const metric::Store& store);
/// REQUIRES: there are some.
Section columns_section(const metric::Store& store, const Findings& found);
Section quality_section(const metric::Store& store, const Findings& found);
Section recommendation_section(const Findings& found);
Section appendix_section(const metric::Store& store, const Findings& found, const std::string& source);

/// "2 of 6 conditions did not complete: ".
std::string failed_count(const Findings& found);
/// "The one run", "Both runs", "All 6 runs".
std::string all_counted(std::size_t count, const std::string& noun);
/// The conclusion from the state digests of healthy conditions.
Text bits_sentence(const Findings& found);
/// The conclusions from time and memory: one sentence each.
Text time_sentence(const Findings& found);
Text memory_sentence(const Findings& found);
Text loss_sentence(const Findings& found);

}  // namespace zs::report
