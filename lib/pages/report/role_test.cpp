// SPDX-License-Identifier: Apache-2.0
// The verdict where two runs with different final bits differ in one attribute, in a batch's report, in a comparison of
// revisions and in zs-runs diff: that of the attribute's role. (verify/two_runs_test.cpp has the same for zs-verify.)
#include <doctest/doctest.h>

#include <cstdlib>
#include <iostream>

#include "attribute/difference.hpp"
#include "plot/sample_test.hpp"
#include "report/batch.hpp"
#include "report/comparison.hpp"

namespace zs::report {
namespace {

using attribute::Attribute;
using attribute::Role;

/// Two runs that say what every run of zs-train says, equal but for their digests.
metric::Store twins() {
  metric::Store store;
  for (const char* const name : {"z1_a", "z1_b"}) {
    plot::Sample sample;
    sample.steps = 12;
    metric::Run run = plot::sample_run(name, 0, sample, 12);
    run.attributes["reduction"] = "exact";
    run.attributes["state_digest"] = std::string(32, name[3]);
    store.runs.push_back(std::move(run));
  }
  return store;
}

/// What the two runs get.
struct Verdicts {
  Document batch;
  Verdict revisions;     ///< on the bits, where each is a revision
  std::string recorded;  ///< of zs-runs diff
};

Verdicts verdicts(metric::Store store) {
  const std::string recorded = attribute::verdict_on_bits(store.runs[0].attributes, store.runs[1].attributes);
  const metric::Store summary = stat::summarize(std::move(store), {}).store;
  const Findings found = findings(summary, "s.h5");
  return {batch(summary, found, "s.h5", ""), compare(summary, found, "s.h5", {}).others.at(0).numerics.verdict,
          recorded};
}

/// Whether a change of this attribute in a run breaks the run itself: its records then say something else.
bool is_of_the_records(const Attribute& row) {
  return row.name == "exit_code" || row.name == "failure" || row.name == "expected_steps" ||
         row.name == "probe_comparison" || row.name == "probe_verdict";
}

}  // namespace

// With ZS_SHOW_ROLES set it prints the table: attribute, role, verdict.
TEST_CASE("the verdict on two runs that differ in one attribute is that of its role") {
  const bool show = std::getenv("ZS_SHOW_ROLES") != nullptr;
  CHECK(verdicts(twins()).batch.label == "Different bits");
  std::size_t changed = 0;
  std::vector<Attribute> rows(attribute::table().begin(), attribute::table().end());
  rows.push_back({.name = "an_unknown_attribute", .role = Role::decides, .label = "unknown"});
  for (const Attribute& row : rows) {
    if (row.name.ends_with('*') || is_of_the_records(row) || row.name == "state_digest") continue;
    INFO(row.name);
    metric::Store store = twins();
    const std::string name(row.name);
    const attribute::Facts known = store.runs[0].attributes;
    const bool text = row.type == attribute::Type::text;
    store.runs[0].attributes[name] = text ? "one" : "2";
    store.runs[1].attributes[name] = text ? "other" : "4";
    const Verdicts answers = verdicts(std::move(store));
    const std::string label = answers.batch.label;
    // Ranks and batches change the global batch, whose factors the runs know; what has its effect through another
    // attribute that the runs know has none of its own.
    const bool factor =
        row.role == Role::layout && row.name != "max_gpu_batch_size" && row.through == "global_batch_size";
    const bool no_effect = !factor && !row.through.empty() &&
                           (row.through == "global_batch_size" || !attribute::value(known, row.through).empty());
    const bool decides = factor || (row.role == Role::decides && !no_effect);
    const bool rounds = row.role == Role::arithmetic && !no_effect;
    CHECK(label == (decides ? "Not the same training" : rounds ? "Not the same arithmetic" : "Different bits"));
    CHECK((answers.batch.verdict == Verdict::bad) == (label == "Different bits"));
    // Revisions are there to be compared: that they are two excuses nothing.
    CHECK(answers.revisions == ((decides || rounds) && !row.program ? Verdict::open : Verdict::bad));
    CHECK(answers.recorded.starts_with(decides  ? "other bits at the end: they train different things: they differ in "
                                       : rounds ? "other bits at the end: they are not expected to be the same bits, "
                                                : "a fault: "));
    if (show) {
      std::cout << row.name << " | " << attribute::name(row.role) << " | " << label << " | "
                << (answers.batch.verdict == Verdict::bad ? 1 : 0) << " | "
                << (row.through.empty() ? "" : "through " + std::string(row.through)) << "\n";
    }
    ++changed;
  }
  CHECK(changed > 100);
}

}  // namespace zs::report
