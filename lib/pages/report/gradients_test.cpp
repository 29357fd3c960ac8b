// SPDX-License-Identifier: Apache-2.0
#include "report/pages.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/folder.hpp"
#include "metric/file.hpp"

namespace zs::report {
namespace {

/// So many checkpoints, at steps 5, 6, ..., of a gradient with the norm 5, in a run's folder.
gradient::History made(const TemporaryFolder& run, std::int64_t count) {
  gradient::History history;
  history.subject = "made";
  history.names = {"w.x"};
  history.shapes = {{2}};
  history.layers = gradient::layers(history.names);
  history.by_step = true;
  gradient::Measure measure;
  measure.add(std::vector<float>{3, 4});
  for (std::int64_t i = 0; i < count; ++i) {
    gradient::Checkpoint checkpoint;
    checkpoint.source = {run.path() + "/checkpoint_x/gradients.pt", "checkpoint_x", 5 + i};
    checkpoint.tensors = checkpoint.layers = {measure};
    checkpoint.whole = measure;
    if (i > 0) checkpoint.tensor_dots = checkpoint.layer_dots = {25};
    history.checkpoints.push_back(checkpoint);
  }
  return history;
}

/// Logs a norm for step 5 in the run's metrics.
void log_norm(const TemporaryFolder& run, double norm) {
  metric::Store store;
  store.runs.emplace_back().name = "run";
  metric::Table& records = store.runs[0].records;
  records.column("step").integers() = {4, 5};
  records.column("grad_norm").reals() = {1, norm};
  write_file(run.path() + "/metrics.h5", metric::to_h5(store));
}

}  // namespace

TEST_CASE("gradients: the norm is compared with the one that the training logged") {
  const TemporaryFolder run;
  CHECK(gradients(made(run, 1)).verdict == Verdict::good);  // nothing was logged
  log_norm(run, 5.0001);
  const Document same = gradients(made(run, 1));
  CHECK(same.verdict == Verdict::good);
  CHECK(same.verdict_text.plain() ==
        "Every layer has a finite gradient, and none is zero, vanishes or explodes, at step 5.");
  log_norm(run, 5.01);
  const Document other = gradients(made(run, 1));
  CHECK(other.verdict == Verdict::bad);
  CHECK(other.label == "Not what was logged");
  CHECK(other.verdict_text.plain().ends_with("The norm at step 5, 5.00000, is not what the training logged, 5.01000."));
  log_norm(run, std::nan(""));
  CHECK(gradients(made(run, 1)).verdict == Verdict::bad);
  write_file(run.path() + "/metrics.h5", "no HDF5");
  CHECK_THROWS_AS(gradients(made(run, 1)), Error);
}

TEST_CASE("gradients: tables say which of many checkpoints they show") {
  const TemporaryFolder run;
  const Document document = gradients(made(run, 25));
  const Section& checkpoints = document.sections.at(2);
  REQUIRE(checkpoints.title == "Checkpoints");
  const Grid& norms = std::get<Grid>(checkpoints.blocks.at(2));
  REQUIRE(norms.header.size() == 11);
  CHECK(norms.header[1] == "step 5");
  CHECK(norms.header.back() == "step 29");
  CHECK(
      std::get<Paragraph>(checkpoints.blocks.at(3)).text.plain().starts_with("Of 25 checkpoints the table shows 10;"));
}

}  // namespace zs::report
